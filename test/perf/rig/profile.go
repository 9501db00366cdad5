package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/perf/pace"
)

// profilesOf is the path of profiles, in our programs and in the API server, which serves them by default.
const profilesOf = "/debug/pprof/"

// Profile writes CPU profiles, and then heap profiles, of the API server and of the running programs to
// files of a folder: NAME.MOMENT.cpu.pprof and NAME.MOMENT.heap.pprof.
func (r *Rig) Profile(ctx context.Context, folder, moment string, during time.Duration) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(r.Cluster.Config())
	if err != nil {
		return err
	}
	write := func(ctx context.Context, name string, client *http.Client, server string) error {
		for kind, what := range map[string]string{"cpu": fmt.Sprintf("profile?seconds=%d", max(1, int(during.Seconds()))), "heap": "heap"} {
			profile, err := get(ctx, client, server+profilesOf+what)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name+"."+moment+"."+kind+".pprof"), profile, 0o644)
			}
			if err != nil {
				return fmt.Errorf("profile of %s: %w", name, err)
			}
		}
		return nil
	}
	programs := r.programsNow()
	return pace.Each(ctx, len(programs)+1, len(programs)+1, func(ctx context.Context, i int) error {
		if i == len(programs) {
			return write(ctx, "kube-apiserver", client, r.Cluster.Server)
		}
		p := programs[i]
		if p.profiles == "" {
			return nil
		}
		if err := p.await(ctx, "to be profiled", p.profiles+profilesOf+"cmdline"); err != nil { // it may have just been started
			return err
		}
		return write(ctx, p.Name, http.DefaultClient, p.profiles)
	})
}

// LiveHeap returns how much memory the objects of the program use that are still referenced, in bytes.
// It runs the garbage collector.
func (p *Program) LiveHeap(ctx context.Context) (int64, error) {
	var profile []byte
	for range 2 { // what has a finalizer or a weak pointer is collected one time later
		var err error
		if profile, err = get(ctx, http.DefaultClient, p.profiles+profilesOf+"heap?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	_, value, _ := bytes.Cut(profile, []byte("# HeapAlloc = "))
	value, _, _ = bytes.Cut(value, []byte("\n"))
	heap, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the profile of %s contains no HeapAlloc: %w", p.Name, err)
	}
	return heap, nil
}

// get returns the body of a successful response.
func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("GET %s: the response status is %s", address, response.Status))
	}
	return body, errors.Join(err, response.Body.Close())
}
