// The saturated 802.11b cell of benches/peers/README.md in ns-3 3.37.
#include "saturated.h"

using namespace ns3;

NetDeviceContainer
Install(YansWifiPhyHelper& phy, const NodeContainer& nodes)
{
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate11Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
    // 1 Mbit/s, the rate of the ACKs, is the only basic rate. An ad hoc station adds to it the
    // mandatory rates of every peer that it does not know yet, so all are made known first.
    for (uint32_t i = 0; i < devices.GetN(); ++i)
    {
        Ptr<WifiRemoteStationManager> manager =
            DynamicCast<WifiNetDevice>(devices.Get(i))->GetRemoteStationManager();
        manager->AddBasicMode(WifiMode("DsssRate1Mbps"));
        for (uint32_t j = 0; j < devices.GetN(); ++j)
        {
            Mac48Address peer = Mac48Address::ConvertFrom(devices.Get(j)->GetAddress());
            manager->AddSupportedMode(peer, WifiMode("DsssRate11Mbps"));
            manager->RecordDisassociated(peer);
        }
    }
    return devices;
}

int
main()
{
    RunSaturated({60.0, "50p", MilliSeconds(20)}, Install);
    return 0;
}
