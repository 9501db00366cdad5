package identity

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// UserAgent of the program in its requests to the API server.
func UserAgent(program string) string { return program + "/" + Version() }

// OfProcess reports this process from every other: the host's name, which is that of the
// pod, and what no process before it had.
func OfProcess() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name for the lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}
