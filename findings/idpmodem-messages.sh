#!/bin/sh
# idpmodem 2.3.9 (PyPI; of the operator) codes the messages of the IsatData Pro satellite service by their definition.
# All elements of a decoded array are the last one, as they share the fields (ArrayField.decode); a list of positions is
# one position many times. An optional data field takes a bit too much, its bit of presence having been read before, so
# that what follows is shifted; one of 127 bytes eight bits, as the lengths are told apart by 127 in one place and 128
# in the other (DataField.bits, encode_field_length). Text with letters beyond ASCII is sent as Latin-1 and read as
# UTF-8. optimal_bits, for the size of a field, gives one bit for three values, except where they begin at 0. And a
# message that ends at a byte is sent with a byte more, of zeros (messages.py, encode); ota_size, "over-the-air", does
# not count it, nor the elements of an array.
#
# Seen, an array of 1, 2, 3: [3, 3, 3], 2 bytes by ota_size, 7 sent. A 5 after five bytes of data: 10 if that is
# optional; after 127 bytes: 0. "Zürich": UnicodeDecodeError. One byte: 4 sent, 3 by ota_size.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check idpmodem==2.3.9 aioserial==1.3.0 pyserial==3.5 \
    pyserial-asyncio==0.6
cat >run.py <<'END'
from idpmodem.codecs.common_message_format import (
    ArrayField,
    DataField,
    Fields,
    MessageCodec,
    StringField,
    UnsignedIntField,
    optimal_bits,
)
from idpmodem.constants import DataFormat


def number(value=None):
    return UnsignedIntField("number", 8, "uint_8", value=value)


def send(*fields, to) -> tuple[int, int, list]:
    """Size told, bytes sent and the fields as received."""
    message = MessageCodec("finding", 255, 1, fields=Fields(list(fields)))
    sent = bytes.fromhex(message.encode(DataFormat.HEX)["data"])
    received = MessageCodec("finding", 255, 1, fields=Fields(list(to)))
    received.decode(bytes([255, 1]) + sent)
    return message.ota_size, 2 + len(sent), received.fields


size, sent, fields = send(number(5), to=[number()])
print("a number:", size, "told,", sent, "sent:", fields[0].value)
assert (size, sent, fields[0].value) == (3, 4, 5)

array = ArrayField("array", 5, Fields([number()]))
for value in 1, 2, 3:
    array.new_element()[0].value = value
size, sent, fields = send(array, to=[ArrayField("array", 5, Fields([number()]))])
values = [element[0].value for element in fields[0].elements]
print("an array:", size, "told,", sent, "sent:", values)
assert (size, sent, values) == (2, 7, [3, 3, 3])

for length, optional, follows in (5, False, 5), (5, True, 10), (126, False, 5), (127, False, 0), (128, False, 5):
    data = bytes(range(1, length + 1))
    *_, fields = send(
        DataField("data", 200, optional=optional, value=data),
        number(5),
        to=[DataField("data", 200, optional=optional), number()],
    )
    print("after", length, "bytes, optional" * optional or "bytes", fields[1].value)
    assert (fields[0].value, fields[1].value) == (data, follows)

try:
    send(StringField("text", 20, value="Zürich"), to=[StringField("text", 20)])
    raise SystemExit("read")
except UnicodeDecodeError as error:
    print("text:", error)

bits = {values: optimal_bits(values) for values in ((0, 2), (1, 3), (-2, 2), (1, 17))}
print("bits", bits)
assert bits == {(0, 2): 2, (1, 3): 1, (-2, 2): 2, (1, 17): 4}  # 2, 2, 3 and 5
END
env/bin/python run.py
