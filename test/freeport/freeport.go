// Package freeport finds free ports for programs under test.
package freeport

import (
	"fmt"
	"net"
)

// Address returns a free loopback address, HOST:PORT, for a program that is about to start.
//
// A port that is only opened and closed may be given away again before the program listens, to the next caller or to
// a connection of another process. So a connection to it is left in state TIME_WAIT. For a minute, the kernel then
// gives the port to nobody who asks for any port, but to a listener that asks for this one (SO_REUSEADDR, as Go sets).
func Address() (string, error) {
	address, err := reserve()
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return address, nil
}

func reserve() (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	address = listener.Addr().String()
	client, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer client.Close() // second: the side that closes first keeps the port
	server, err := listener.Accept()
	if err != nil {
		return "", err
	}
	return address, server.Close()
}
