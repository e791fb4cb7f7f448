#!/bin/sh
# ccsds-cop 0.1.2 (PyPI), COP-1 for the link to a spacecraft by CCSDS 232.1-B-2, takes each new acknowledgement for one
# of all frames (remove_acknowledged_frames_from_sent_queue in cop_1/fop/fop.py). Where the spacecraft reports the first
# of several frames, the caller gets a positive confirmation of each, those that were lost too, and none is sent again.
# The report that then asks for the lost frame has a number below what it now expects, and ends the service with an
# alert. Numbers are compared as they are, not modulo 256 (on_clcw_arrived): where they wrap around, an acknowledgement
# that leaves frames open ends the service too. One at a time all is right, and so is one acknowledgement of all. By the
# standard (section 5, FOP-1) only frames below N(R) leave the Sent_Queue with a confirmation, and N(R) is compared
# modulo 256.
#
# Seen, 5 frames sent, the second lost: the report of one frame confirms 5; the request for the second brings no frame,
# but alert NNR. Frames 254 to 257 sent, without a loss, the report of two of them: alert NNR.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ccsds-cop==0.1.2 spacepackets==0.30.1
cat >run.py <<'END'
from ccsds_cop.cop_1.common.ccsds import ControlWord, Gvcid
from ccsds_cop.cop_1.fop import fop, types

CHANNEL = Gvcid(0b1100, 1, 0)


class Ground:
    """The ground's end, with a lower layer that accepts each frame at once."""

    def __init__(self):
        self.fop = fop.Fop1(CHANNEL, k=10, timer_initial_value=3600)
        self.fop.ad_out = self.fop.bc_out = self.fop.bd_out = True
        self.direct(types.DirectiveType.SET_TRANSMISSION_LIMIT, 3)
        self.direct(types.DirectiveType.INITIATE_AD_NO_CLCW)
        assert self.fop.state == types.FopState.ACTIVE
        self.requests = 0
        self.told()

    def direct(self, directive, qualifier=0):
        self.fop.on_receive_directive(types.DirectiveRequest(CHANNEL, 0, directive, qualifier))

    def transmitted(self):
        """Numbers of the frames that go to the lower layer, all of which it accepts."""
        numbers = []
        while self.fop.interface.to_lower:
            request = self.fop.interface.to_lower.pop()
            if isinstance(request, types.TransmitRequestForFrame):
                numbers.append(request.v_s)
                self.fop.on_receive_response_from_lower_layer(
                    types.Response(CHANNEL, types.ResponseType.AD_ACCEPTED)
                )
        return numbers

    def send(self):
        request = types.RequestToTransferFdu(CHANNEL, self.requests, b"frame", types.ServiceType.AD)
        self.requests += 1
        self.fop.on_receive_request_to_transfer_fdu(request)
        return self.transmitted()

    def told(self):
        """Number of positive confirmations, and alerts."""
        confirmed, alerts = 0, []
        while self.fop.interface.to_higher:
            notification = self.fop.interface.to_higher.pop()
            if isinstance(notification, types.TransferNotification):
                confirmed += notification.notification_type == types.NotificationType.POSITIVE_CONFIRM
            elif isinstance(notification, types.AsyncNotification):
                alerts.append(notification.notification_qualifier.name)
        return confirmed, alerts

    def report(self, number, retransmit=False):
        """The spacecraft waits for this number; what the caller is told and what is sent then."""
        self.fop.on_clcw_arrived(ControlWord(report_value=number, retransmit=retransmit))
        return *self.told(), self.transmitted()


def lost_frame():
    ground = Ground()
    assert [ground.send() for _ in range(5)] == [[0], [1], [2], [3], [4]]
    ground.told()
    first = ground.report(1)
    print("report of one of 5 frames: confirmed %d, alerts %s, sent %s" % first)
    second = ground.report(1, retransmit=True)
    print("report that the second is missing: confirmed %d, alerts %s, sent %s" % second)
    return first, second


def wrap():
    ground = Ground()
    for number in range(254):
        assert ground.send() == [number]
        assert ground.report(number + 1) == (1, [], [])
    assert [ground.send() for _ in range(4)] == [[254], [255], [0], [1]]
    ground.told()
    told = ground.report(0)
    print("report of two of 4 frames, the last two after the wrap: confirmed %d, alerts %s, sent %s" % told)
    return told


told = [*lost_frame(), wrap()]
raise SystemExit(told != [(5, [], []), (0, ["NNR"], []), (0, ["NNR"], [])])
END
timeout 60 env/bin/python run.py
