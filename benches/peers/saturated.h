// Twenty saturated stations at one point in ns-3 3.37, for the cells of benches/peers/README.md.
#pragma once

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>

struct Cell
{
    // Simulated time, s.
    double stop;
    // Limit of a station's queue.
    const char* queue;
    // Time between the packets of a station.
    ns3::Time interval;
};

// `install` gives the nodes their devices. Prints one JSON object: throughput in bit/s, packets
// delivered.
template <typename Install>
void
RunSaturated(const Cell& cell, Install install)
{
    using namespace ns3;

    const uint32_t stations = 20;
    // MSDUs of 1500 bytes: ns-3 puts 8 bytes of LLC before the packet.
    const uint32_t size = 1500;
    const uint32_t llc = 8;

    Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue(cell.queue));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(cell.stop)));

    NodeContainer nodes(stations);
    // All at one point: of two frames that overlap, neither is stronger.
    MobilityHelper().Install(nodes);

    YansWifiPhyHelper phy;
    phy.SetChannel(YansWifiChannelHelper::Default().Create());
    // As in the other simulators, a receiver follows the first of overlapping frames and waits EIFS
    // after it.
    phy.DisablePreambleDetectionModel();
    NetDeviceContainer devices = install(phy, nodes);

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
        source->SetAttribute("Interval", TimeValue(cell.interval));
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

    Simulator::Stop(Seconds(cell.stop));
    Simulator::Run();
    std::printf("{\"throughput\": %.0f, \"packets\": %lu}\n",
                8.0 * size * static_cast<double>(delivered) / cell.stop,
                delivered);
    Simulator::Destroy();
}
