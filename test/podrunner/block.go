package podrunner

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// blockSize is the number of addresses of a block. The last addresses of its network are not used.
const blockSize = 250

// block is a block of pod addresses that one Runner on this machine uses at a time. localcluster routes connections
// to the pod 10.77.x.y or fd00:77::a4d:xxyy to the process at 127.77.x.y, because a loopback address is invalid in an
// EndpointSlice.
type block struct {
	number, used int
	ipv6         bool
	// reserved is open as long as the block is in use.
	reserved net.Listener
}

// reserve returns a block that no other Runner uses.
func reserve(ipv6 bool) (*block, error) {
	for number := range 256 {
		reserved, err := net.Listen("tcp", fmt.Sprintf("127.77.%d.254:7077", number))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &block{number: number, ipv6: ipv6, reserved: reserved}, nil
	}
	return nil, errors.New("all blocks are in use")
}

func (b *block) release() { _ = b.reserved.Close() }

// next returns the next pod's address in the cluster and the address of its process. Addresses are not reused,
// because a process can outlive its pod.
func (b *block) next() (ip, process string, err error) {
	if b.used == blockSize {
		return "", "", fmt.Errorf("all %d addresses are used", blockSize)
	}
	b.used++
	if b.ipv6 {
		return fmt.Sprintf("fd00:77::a4d:%x", b.number<<8|b.used), fmt.Sprintf("127.77.%d.%d", b.number, b.used), nil
	}
	return fmt.Sprintf("10.77.%d.%d", b.number, b.used), fmt.Sprintf("127.77.%d.%d", b.number, b.used), nil
}
