// Command mpi-operator is Kubeflow's mpi-operator, which runs MPIJob v2beta1, with a different main function. The
// original listens for health checks on port 8080 of all addresses, and no flag changes this, so only one could run
// on a machine. This one reads the port from HEALTH_PORT.
package main

import (
	"flag"
	"os"
	"strconv"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app"
	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"k8s.io/klog/v2"
)

// Unexported variables of package app.
var (
	//go:linkname healthCheckPort github.com/kubeflow/mpi-operator/cmd/mpi-operator/app.healthCheckPort
	healthCheckPort int
	//go:linkname leaseDuration github.com/kubeflow/mpi-operator/cmd/mpi-operator/app.leaseDuration
	leaseDuration time.Duration
	//go:linkname renewDuration github.com/kubeflow/mpi-operator/cmd/mpi-operator/app.renewDuration
	renewDuration time.Duration
)

func main() {
	klog.InitFlags(nil)
	s := options.NewServerOption()
	s.AddFlags(flag.CommandLine)
	flag.Parse()

	port, err := strconv.ParseUint(os.Getenv("HEALTH_PORT"), 10, 16)
	if err != nil {
		klog.Fatalf("HEALTH_PORT must be the port for health checks: %v", err)
	}
	healthCheckPort = int(port)
	// Leader election cannot be switched off. This is the only replica, so it need not end when a busy machine delays
	// the renewal of its lease for 5 seconds.
	leaseDuration, renewDuration = 2*time.Minute, time.Minute

	if err := app.Run(s); err != nil {
		klog.Fatal(err)
	}
}
