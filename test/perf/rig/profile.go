package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// CPUProfiles writes CPU profiles of the API server and of programs to files NAME.SUFFIX.pprof in a
// folder. For programs, the rig must have Profiling.
func (r *Rig) CPUProfiles(ctx context.Context, during time.Duration, folder, suffix string, programs ...*Program) error {
	what := fmt.Sprintf("profile?seconds=%d", max(1, int(during.Seconds())))
	errs := make([]error, len(programs)+1)
	var group sync.WaitGroup
	for i, p := range programs {
		group.Go(func() { errs[i] = p.profile(ctx, what, filepath.Join(folder, p.Name+"."+suffix+".pprof")) })
	}
	group.Go(func() {
		errs[len(programs)] = r.profileServer(ctx, what, filepath.Join(folder, "kube-apiserver."+suffix+".pprof"))
	})
	group.Wait()
	return errors.Join(errs...)
}

// The API server serves profiles by default.
func (r *Rig) profileServer(ctx context.Context, what, file string) error {
	client, err := rest.HTTPClientFor(r.Cluster.Config())
	if err != nil {
		return err
	}
	return save(file)(fetch(ctx, client, r.Cluster.Server, what))
}

// HeapProfile writes a heap profile of the program to a file NAME.SUFFIX.pprof in a folder.
func (p *Program) HeapProfile(ctx context.Context, folder, suffix string) error {
	return p.profile(ctx, "heap", filepath.Join(folder, p.Name+"."+suffix+".pprof"))
}

func (p *Program) profile(ctx context.Context, what, file string) error {
	return save(file)(p.fetch(ctx, what))
}

// LiveHeap returns how much memory the objects of the program use that are still referenced, in bytes.
// It runs the garbage collector.
func (p *Program) LiveHeap(ctx context.Context) (bytes int64, err error) {
	for range 2 { // what has a finalizer or a weak pointer is collected one time later
		profile, err := p.fetch(ctx, "heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		text, err := io.ReadAll(profile)
		if err := errors.Join(err, profile.Close()); err != nil {
			return 0, err
		}
		_, value, _ := strings.Cut(string(text), "# HeapAlloc = ")
		value, _, _ = strings.Cut(value, "\n")
		if bytes, err = strconv.ParseInt(value, 10, 64); err != nil {
			return 0, fmt.Errorf("the profile of %s contains no HeapAlloc: %w", p.Name, err)
		}
	}
	return bytes, nil
}

func (p *Program) fetch(ctx context.Context, what string) (io.ReadCloser, error) {
	if p.profiles == "" {
		return nil, fmt.Errorf("profile of %s: the rig was started without Profiling", p.Name)
	}
	server := "http://" + p.profiles
	if err := p.await(ctx, "to be profiled", server+"/debug/pprof/cmdline"); err != nil { // it may have just been started
		return nil, err
	}
	return fetch(ctx, http.DefaultClient, server, what)
}

func fetch(ctx context.Context, client *http.Client, server, what string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/debug/pprof/"+what, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET %s: the response status is %s", request.URL, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// save returns a function that writes a profile to a file.
func save(file string) func(io.ReadCloser, error) error {
	return func(profile io.ReadCloser, err error) error {
		if err != nil {
			return err
		}
		defer profile.Close()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		out, err := os.Create(file)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, profile)
		return errors.Join(err, out.Close())
	}
}
