// The saturated 802.11ax cell of benches/peers/README.md in ns-3 3.37.
// Prints one JSON object: throughput in bit/s, packets delivered.
#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>

using namespace ns3;

int
main()
{
    const uint32_t stations = 20;
    const double stop = 10.0;
    // MSDUs of 1500 bytes: ns-3 puts 8 bytes of LLC before the packet.
    const uint32_t size = 1500;
    const uint32_t llc = 8;

    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue("500p"));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(stop)));

    NodeContainer nodes(stations);
    // All at one point: of two frames that overlap, neither is stronger.
    MobilityHelper().Install(nodes);

    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    // As in the other simulators, a receiver follows the first of overlapping frames and waits EIFS
    // after it.
    phy.DisablePreambleDetectionModel();
    phy.Set("ChannelSettings", StringValue("{42, 80, BAND_5GHZ, 0}"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(true));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211ax);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("HeMcs9"),
                                 "ControlMode",
                                 StringValue("OfdmRate24Mbps"));
    wifi.ConfigHeOptions("GuardInterval", TimeValue(NanoSeconds(800)));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);

    PacketSocketHelper().Install(nodes);
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < stations; ++i)
    {
        PacketSocketAddress receiver;
        receiver.SetSingleDevice(devices.Get(i)->GetIfIndex());
        receiver.SetPhysicalAddress(devices.Get((i + 10) % stations)->GetAddress());
        receiver.SetProtocol(1);
        Ptr<PacketSocketClient> source = CreateObject<PacketSocketClient>();
        source->SetRemote(receiver);
        source->SetAttribute("PacketSize", UintegerValue(size - llc));
        source->SetAttribute("Interval", TimeValue(MicroSeconds(200)));
        source->SetAttribute("MaxPackets", UintegerValue(0));
        nodes.Get(i)->AddApplication(source);
    }
    for (uint32_t i = 0; i < stations; ++i)
    {
        devices.Get(i)->SetReceiveCallback(
            [&delivered](Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&) {
                ++delivered;
                return true;
            });
    }

    Simulator::Stop(Seconds(stop));
    Simulator::Run();
    std::printf("{\"throughput\": %.0f, \"packets\": %lu}\n",
                8.0 * size * static_cast<double>(delivered) / stop,
                delivered);
    Simulator::Destroy();
    return 0;
}
