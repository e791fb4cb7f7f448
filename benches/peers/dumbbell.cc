// The wired dumbbell of benches/peers/README.md in ns-3 3.37.
// Prints one JSON object: goodput in bit/s, data packets through the bottleneck.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>

using namespace ns3;

int
main()
{
    const uint32_t flows = 10;
    const double stop = 60.0;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    // With limited transmit and without SACK, 3.37 crashes in TcpRateLinux::SkbSent.
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(64000));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(64000));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(128000));

    NodeContainer routers(2);
    NodeContainer left(flows);
    NodeContainer right(flows);
    InternetStackHelper internet;
    internet.InstallAll();

    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("10ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("300p"));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));

    // One queue per link, as in the other simulators: without flow control, ns-3 puts no queue
    // discipline above the devices.
    bottleneck.DisableFlowControl();
    access.DisableFlowControl();

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    auto connect = [&](PointToPointHelper& link, Ptr<Node> a, Ptr<Node> b) {
        Ipv4InterfaceContainer interfaces = addresses.Assign(link.Install(a, b));
        addresses.NewNetwork();
        return interfaces;
    };
    connect(bottleneck, routers.Get(0), routers.Get(1));

    ApplicationContainer sinks;
    for (uint32_t i = 0; i < flows; ++i)
    {
        connect(access, left.Get(i), routers.Get(0));
        Ipv4Address receiver = connect(access, right.Get(i), routers.Get(1)).GetAddress(0);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(receiver, 5000))
                      .Install(right.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(receiver, 5000));
        bulk.SetAttribute("SendSize", UintegerValue(1000));
        bulk.Install(left.Get(i)).Start(Seconds(0.1 * i));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(stop));
    Simulator::Run();
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < flows; ++i)
    {
        delivered += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    Ptr<PointToPointNetDevice> device =
        DynamicCast<PointToPointNetDevice>(routers.Get(0)->GetDevice(1));
    const QueueBase& queue = *device->GetQueue();
    std::printf("{\"goodput\": %.0f, \"segments\": %u, \"drops\": %u}\n",
                8.0 * static_cast<double>(delivered) / stop,
                queue.GetTotalReceivedPackets(),
                queue.GetTotalDroppedPackets());
    Simulator::Destroy();
    return 0;
}
