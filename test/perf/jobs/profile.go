package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
)

// profiled is the duration of profiles.
const profiled = 15 * time.Second

// foreign matches characters to replace in file names.
var foreign = regexp.MustCompile(`[^a-zA-Z0-9.-]+`)

// profile starts profiles of the programs and of the API server. The returned function waits until
// the files are written.
func (b *Bench) profile(ctx context.Context, queue Queue, programs []*rig.Program) (wait func() error) {
	if b.options.Profiles == "" {
		return func() error { return nil }
	}
	file := func(process string) string {
		return filepath.Join(b.options.Profiles, fmt.Sprintf("%s-%d-%s.pprof", foreign.ReplaceAllString(queue.Name, "-"), b.turns, process))
	}
	var group sync.WaitGroup
	errs := make([]error, len(programs)+1)
	for i, p := range programs {
		group.Go(func() { errs[i] = p.CPUProfile(ctx, profiled, file(p.Name)) })
	}
	group.Go(func() { errs[len(programs)] = b.profileServer(ctx, file("kube-apiserver")) })
	return func() error {
		group.Wait()
		return errors.Join(errs...)
	}
}

// profileServer writes a profile of the API server, which serves profiles by default.
func (b *Bench) profileServer(ctx context.Context, path string) (err error) {
	answer, err := b.api.stream(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profiled.Seconds())), "*/*")
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, answer)
	return err
}
