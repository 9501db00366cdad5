package cluster

import (
	"errors"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// strayDeadline is how long a killed process may take to vanish.
const strayDeadline = 5 * time.Second

// killStrays ends what a cluster without supervisor left running. The kernel
// ends the parts when their supervisor is killed; left are children of programs
// which it does not know. Each is known by number and start time, or by the mark
// in its environment, so that no stranger is hit who has got the same number.
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
	// The state may be missing or half a story; the marks are the whole one.
	if status, err := f.savedState(); err == nil {
		if status.Data != string(f) {
			// It was started under another name of the same folder.
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
