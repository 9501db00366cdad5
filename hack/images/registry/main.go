// Command registry serves an empty registry in memory until its standard input ends. It prints its address.
// Installation tests push a release to it.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	go func() {
		// The parent has ended, or has closed the input.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	err = http.Serve(listener, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	fmt.Fprintln(os.Stderr, "registry:", err)
	os.Exit(1)
}
