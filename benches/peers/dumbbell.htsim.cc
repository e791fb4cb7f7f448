// The wired dumbbell of benches/peers/README.md in htsim. run.py compiles it with the sources of a
// checkout of https://github.com/Broadcom/csg-htsim.

#include <iostream>
#include <memory>
#include <vector>

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

namespace {

constexpr int PAYLOAD = 1000;
constexpr int PACKET = 1040;
constexpr int PAIRS = 10;
constexpr double SECONDS = 60;

// One direction of a link: a queue at its rate, then its delay.
struct Direction {
    Queue queue;
    Pipe pipe;

    Direction(uint64_t mbps, double ms, int packets, EventList& events)
        : queue(speedFromMbps(mbps), memFromPkt(packets), events, nullptr),
          pipe(timeFromMs(ms), events) {}
};

struct Link {
    Direction forward, backward;

    Link(uint64_t mbps, double ms, int packets, EventList& events)
        : forward(mbps, ms, packets, events), backward(mbps, ms, packets, events) {}
};

void go(Route& route, Direction& direction) {
    route.push_back(&direction.queue);
    route.push_back(&direction.pipe);
}

}  // namespace

int main() {
    EventList& events = EventList::getTheEventList();
    EventList::setEndtime(timeFromSec(SECONDS));
    // Of a packet on the wire: htsim knows no headers, so its sequence numbers count them, too.
    Packet::set_packet_size(PACKET);

    Link bottleneck(100, 10.0, 300, events);
    TcpRtxTimerScanner scanner(timeFromMs(10), events);
    std::vector<std::unique_ptr<Link>> links;
    std::vector<std::unique_ptr<TcpSrc>> senders;
    std::vector<std::unique_ptr<TcpSink>> receivers;
    std::vector<std::unique_ptr<Route>> routes;
    for (int pair = 0; pair < PAIRS; pair++) {
        links.push_back(std::make_unique<Link>(1000, 1.0, 1000, events));
        Link& left = *links.back();
        links.push_back(std::make_unique<Link>(1000, 1.0, 1000, events));
        Link& right = *links.back();
        senders.push_back(std::make_unique<TcpSrc>(nullptr, nullptr, events));
        receivers.push_back(std::make_unique<TcpSink>());
        TcpSrc& sender = *senders.back();
        TcpSink& receiver = *receivers.back();
        sender.set_cwnd(10 * PACKET);
        sender.set_ssthresh(64 * PACKET);
        sender._maxcwnd = 64 * PACKET;
        scanner.registerTcp(sender);

        routes.push_back(std::make_unique<Route>());
        Route& out = *routes.back();
        go(out, left.forward);
        go(out, bottleneck.forward);
        go(out, right.forward);
        out.push_back(&receiver);
        routes.push_back(std::make_unique<Route>());
        Route& back = *routes.back();
        go(back, right.backward);
        go(back, bottleneck.backward);
        go(back, left.backward);
        back.push_back(&sender);
        sender.connect(out, back, receiver, timeFromMs(100.0 * pair));
    }

    while (EventList::doNextEvent()) {
    }

    double packets = 0;
    for (const auto& receiver : receivers) {
        packets += static_cast<double>(receiver->_cumulative_ack) / PACKET;
    }
    std::cout << "{\"goodput\": " << 8 * PAYLOAD * packets / SECONDS << "}" << std::endl;
}
