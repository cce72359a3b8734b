package proxy

import "encoding/binary"

const (
	frameHead   = 7 // type, channel, size
	frameMethod = 1
	classBasic  = 60
	basicAck    = 80
	basicNack   = 120
)

func everything(data []byte) []byte { return data }

// withoutConfirms returns a filter for what a broker sends on one connection. It
// looks for whole frames: basic.ack and basic.nack from a broker are confirms.
func (p *Proxy) withoutConfirms() func([]byte) []byte {
	var rest []byte
	return func(data []byte) []byte {
		rest = append(rest, data...)
		var out []byte
		for len(rest) >= frameHead {
			size := frameHead + int(binary.BigEndian.Uint32(rest[3:])) + 1
			if len(rest) < size {
				break
			}
			if frame := rest[:size]; p.passes(frame) {
				out = append(out, frame...)
			}
			rest = rest[size:]
		}
		return out
	}
}

func (p *Proxy) passes(frame []byte) bool {
	if frame[0] != frameMethod || len(frame) < frameHead+4 {
		return true
	}
	class := binary.BigEndian.Uint16(frame[frameHead:])
	method := binary.BigEndian.Uint16(frame[frameHead+2:])
	if class != classBasic || method != basicAck && method != basicNack {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.confirms
}
