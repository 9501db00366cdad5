package identity

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// UserAgent returns the user agent for the program's requests to the API server.
func UserAgent(program string) string { return program + "/" + Version() }

// OfProcess returns an identity that is unique to this process: the host name, which is the
// name of the pod, and a random UUID.
func OfProcess() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name for the lease: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}
