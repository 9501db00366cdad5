package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// Program is an additional program to run with the cluster.
type Program struct {
	Name     string `json:"name"`
	ReadyURL string `json:"readyURL,omitempty"`
	// Path is the executable, Dir the working directory. Both are absolute.
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	Dir  string   `json:"dir"`
}

// programDeadline is how long a program may take to become ready.
const programDeadline = 30 * time.Second

// programGrace is longer than that of the parts, because a program may have to release leases.
const programGrace = 5 * time.Second

var programName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// startProgram starts a program and waits until it is ready. It can reuse the name of a program that has ended.
func (s *Supervisor) startProgram(ctx context.Context, program Program) error {
	if !programName.MatchString(program.Name) {
		return fmt.Errorf("program name %q: must be lower case letters, digits, '-' and '.'", program.Name)
	}
	if program.Name == "supervisor" {
		return fmt.Errorf("start %s: %w", program.Name, errNameTaken)
	}
	if _, phase := s.current(); phase != PhaseReady {
		return fmt.Errorf("start %s: the cluster is %s", program.Name, phase)
	}

	p := part{
		name:  program.Name,
		rank:  rankProgram,
		grace: programGrace,
		spec: process.Spec{
			Name: program.Name,
			Path: program.Path,
			Args: program.Args,
			// The last entry for a name takes precedence.
			Env: slices.Concat(os.Environ(), []string{"KUBECONFIG=" + s.folder.Kubeconfig(), s.folder.mark()}),
			Dir: program.Dir,
			Log: s.folder.Log(program.Name),
		},
	}
	if program.ReadyURL != "" {
		p.ready = healthy(program.ReadyURL)
	}
	ctx, cancel := readyWithin(ctx, programDeadline)
	defer cancel()
	err := s.run(ctx, p)
	if _, crashed := errors.AsType[*crash](err); err != nil && !crashed && !errors.Is(err, errNameTaken) {
		// A program that did not become ready is stopped.
		return errors.Join(err, s.stopProgram(program.Name))
	}
	return err
}

// stopProgram ends a program with SIGTERM. It is no error if the program has already ended.
func (s *Supervisor) stopProgram(name string) error {
	s.mu.Lock()
	var names []string
	var found *runningPart
	for _, running := range s.parts {
		if running.rank != rankProgram {
			continue
		}
		names = append(names, running.name)
		if running.name == name {
			found = running
			found.stopping = true
			if found.state == StateCrashed {
				found.state = StateStopped
			}
		}
	}
	s.mu.Unlock()
	if found == nil {
		return fmt.Errorf("unknown program %q; known programs: %s", name, strings.Join(append(names, "none else"), ", "))
	}
	s.stopPart(found)
	s.save()
	return nil
}
