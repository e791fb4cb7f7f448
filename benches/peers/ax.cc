// The saturated 802.11ax cell of benches/peers/README.md in ns-3 3.37.
#include "saturated.h"

using namespace ns3;

NetDeviceContainer
Install(YansWifiPhyHelper& phy, const NodeContainer& nodes)
{
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
    return wifi.Install(phy, mac, nodes);
}

int
main()
{
    RunSaturated({10.0, "500p", MicroSeconds(200)}, Install);
    return 0;
}
