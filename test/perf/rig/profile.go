package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// CPUProfile writes a CPU profile of the program to a file. The rig must have Profiling.
func (p *Program) CPUProfile(ctx context.Context, during time.Duration, file string) error {
	return p.profile(ctx, fmt.Sprintf("profile?seconds=%d", max(1, int(during.Seconds()))), file)
}

// HeapProfile writes a heap profile of the program to a file.
func (p *Program) HeapProfile(ctx context.Context, file string) error {
	return p.profile(ctx, "heap", file)
}

func (p *Program) profile(ctx context.Context, what, file string) error {
	if p.profiles == "" {
		return fmt.Errorf("profile of %s: the rig was started without Profiling", p.Name)
	}
	server := "http://" + p.profiles
	if err := p.await(ctx, "to be profiled", server+"/debug/pprof/cmdline"); err != nil { // it may have just been started
		return err
	}
	if err := fetchProfile(ctx, http.DefaultClient, server, what, file); err != nil {
		return fmt.Errorf("profile of %s: %w", p.Name, err)
	}
	return nil
}

// ServerProfile writes a CPU profile of the API server to a file.
func (r *Rig) ServerProfile(ctx context.Context, during time.Duration, file string) error {
	client, err := rest.HTTPClientFor(r.Cluster.Config())
	if err != nil {
		return err
	}
	what := fmt.Sprintf("profile?seconds=%d", max(1, int(during.Seconds())))
	if err := fetchProfile(ctx, client, r.Cluster.Server, what, file); err != nil {
		return fmt.Errorf("profile of kube-apiserver: %w", err)
	}
	return nil
}

func fetchProfile(ctx context.Context, client *http.Client, server, what, file string) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the response status is %s", response.Status)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, response.Body)
	return err
}
