// The chain of benches/peers/README.md in ns-3 3.37.
// Prints one JSON object: goodput in bit/s, bytes delivered.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>

using namespace ns3;

int
main()
{
    const uint32_t stations = 8;
    const double stop = 300.0;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    // With limited transmit and without SACK, 3.37 crashes in TcpRateLinux::SkbSent.
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(2000));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(0));

    NodeContainer nodes(stations);
    MobilityHelper mobility;
    mobility.SetPositionAllocator("ns3::GridPositionAllocator",
                                  "DeltaX",
                                  DoubleValue(200.0),
                                  "GridWidth",
                                  UintegerValue(stations));
    mobility.Install(nodes);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel",
                               "Frequency",
                               DoubleValue(914e6),
                               "HeightAboveZ",
                               DoubleValue(1.5));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    // 0.28183815 W; what is weaker than at 550 m (1.559e-11 W) is not noticed, and what is weaker
    // than at 250 m (3.652e-10 W) is not received.
    phy.Set("TxPowerStart", DoubleValue(24.4999));
    phy.Set("TxPowerEnd", DoubleValue(24.4999));
    phy.Set("RxSensitivity", DoubleValue(-78.0716));
    phy.Set("CcaEdThreshold", DoubleValue(-78.0716));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "MinimumRssi",
                                  DoubleValue(-64.3747));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate2Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    // 1 Mbit/s, the rate of control frames, is the only basic rate. An ad hoc station adds to it the
    // mandatory rates of every peer that it does not know yet, so all are made known first.
    for (uint32_t i = 0; i < stations; ++i)
    {
        Ptr<WifiRemoteStationManager> manager =
            DynamicCast<WifiNetDevice>(devices.Get(i))->GetRemoteStationManager();
        manager->AddBasicMode(WifiMode("DsssRate1Mbps"));
        for (uint32_t j = 0; j < stations; ++j)
        {
            Mac48Address peer = Mac48Address::ConvertFrom(devices.Get(j)->GetAddress());
            manager->AddSupportedMode(peer, WifiMode("DsssRate2Mbps"));
            manager->RecordDisassociated(peer);
        }
    }

    InternetStackHelper().Install(nodes);
    Ipv4InterfaceContainer interfaces =
        Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    // Each station sends to the next one, in both directions.
    Ipv4StaticRoutingHelper routing;
    const uint32_t end = stations - 1;
    for (uint32_t i = 0; i < stations; ++i)
    {
        Ptr<Ipv4StaticRouting> routes = routing.GetStaticRouting(nodes.Get(i)->GetObject<Ipv4>());
        if (i < end)
        {
            routes->AddHostRouteTo(interfaces.GetAddress(end), interfaces.GetAddress(i + 1), 1);
        }
        if (i > 0)
        {
            routes->AddHostRouteTo(interfaces.GetAddress(0), interfaces.GetAddress(i - 1), 1);
        }
    }

    InetSocketAddress receiver(interfaces.GetAddress(end), 5000);
    ApplicationContainer sink =
        PacketSinkHelper("ns3::TcpSocketFactory", receiver).Install(nodes.Get(end));
    BulkSendHelper bulk("ns3::TcpSocketFactory", receiver);
    bulk.SetAttribute("SendSize", UintegerValue(1000));
    bulk.Install(nodes.Get(0));

    Simulator::Stop(Seconds(stop));
    Simulator::Run();
    const uint64_t delivered = DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx();
    std::printf("{\"goodput\": %.0f, \"bytes\": %lu}\n",
                8.0 * static_cast<double>(delivered) / stop,
                delivered);
    Simulator::Destroy();
    return 0;
}
