package cluster

import (
	"errors"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// strayDeadline is how long a killed process may take to exit.
const strayDeadline = 5 * time.Second

// killStrays kills remaining processes of a cluster without a supervisor. The kernel kills the parts when their
// supervisor is killed, but not the children of programs. killStrays identifies processes by PID and start time, or
// by the mark in their environment, so it kills no other process with the same PID.
func (f Folder) killStrays() error {
	strays := f.strays()
	var errs []error
	for _, stray := range strays {
		if err := stray.Kill(strayDeadline); err != nil {
			errs = append(errs, fmt.Errorf("data folder %s: %w", f, err))
		}
	}
	return errors.Join(errs...)
}

func (f Folder) strays() []process.Identity {
	strays := process.Marked(markVariable, string(f))
	// The saved state may be missing or incomplete. The marks are complete.
	if status, err := f.savedState(); err == nil {
		if status.Data != string(f) {
			// The cluster was started with another path of the same folder.
			strays = append(strays, process.Marked(markVariable, status.Data)...)
		}
		for _, p := range status.Parts {
			if p.Alive() {
				strays = append(strays, p.Identity)
			}
		}
	}
	return strays
}
