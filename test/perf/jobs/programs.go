package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kube-queue.dev/kube-queue/test/perf/rig"
)

// open starts the programs of the queue, which it returns even if it fails. If one of them exits
// during the turn, it calls cancel.
func (b *Bench) open(ctx context.Context, queue Queue, cancel context.CancelCauseFunc) (running []*rig.Program, err error) {
	if queue.Name == KubeQueue {
		err = b.policies(ctx)
	} else {
		err = b.withoutPolicies(ctx)
	}
	if err != nil {
		return nil, err
	}
	var starts []func() (*rig.Program, error)
	switch {
	case queue.Name == KubeQueue:
		starts = append(starts, func() (*rig.Program, error) { return b.rig.Run(ctx, rig.Controller, nil) },
			func() (*rig.Program, error) { return b.rig.Run(ctx, rig.Extensions, nil, "--enabled-extensions=job") })
	case queue.Labelled():
		names, err := commandNames(b.options.With)
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			starts = append(starts, func() (*rig.Program, error) { return b.rig.Command(name, b.options.With[i]) })
		}
	}
	for _, start := range starts {
		program, err := start()
		if err != nil {
			return running, err
		}
		running = append(running, program)
		go program.Guard(ctx, cancel)
	}
	return running, nil
}

func stop(programs []*rig.Program) error {
	var errs []error
	for _, p := range programs {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// commandNames returns the program names of the commands of --with. Repeated names are numbered.
func commandNames(commands []string) ([]string, error) {
	names, times := make([]string, len(commands)), map[string]int{}
	for i, command := range commands {
		for word := range strings.FieldsSeq(command) {
			if word != "exec" && !strings.Contains(word, "=") {
				names[i] = filepath.Base(word)
				break
			}
		}
		if names[i] == "" {
			return nil, fmt.Errorf("--with %q: the command contains no program", command)
		}
		if times[names[i]]++; times[names[i]] > 1 {
			names[i] = fmt.Sprintf("%s-%d", names[i], times[names[i]])
		}
	}
	return names, nil
}
