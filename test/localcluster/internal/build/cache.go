package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// CacheDir returns the folder of built components: KUBE_QUEUE_CACHE, else kube-queue in
// XDG_CACHE_HOME, else in ~/.cache.
func CacheDir() (string, error) {
	dir := os.Getenv("KUBE_QUEUE_CACHE")
	if dir == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the cache of built programs: %w; set KUBE_QUEUE_CACHE", err)
		}
		dir = filepath.Join(caches, "kube-queue")
	}
	return filepath.Abs(filepath.Join(dir, "localcluster"))
}

// key returns a hash of everything that determines the result of building the module in dir. platform is the Go
// version and target.
func key(c Component, dir, platform string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", platform, c.goFlags(), c.LDFlags)
	fmt.Fprintf(hash, "%q %q %q %q %q\n", c.Name, c.Package, c.Binary, c.Links, c.Files)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("component %s: %w", c.Name, err)
	}
	mod, other := c.modules()
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == mod }) {
		return "", fmt.Errorf("component %s: no %s in %s", c.Name, mod, dir)
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || other(entry.Name()) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%q %d\n", filepath.ToSlash(name), len(content))
		hash.Write(content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("component %s: %w", c.Name, err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// platform returns the Go version and target in the folder dir of the component, whose go.mod can
// select a toolchain.
func platform(ctx context.Context, c Component, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT")
	cmd.Dir, cmd.Env = dir, environment(c.goFlags())
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return "", fmt.Errorf("go env in %s: %w\n%s", dir, err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("go env in %s: %w", dir, err)
	}
	return strings.Join(strings.Fields(string(out)), " "), nil
}

// lock locks the cache for a build. Builds run one after another, because concurrent builds would
// do the same work twice.
func lock(ctx context.Context, cache string, waiting func()) (release func(), err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for reported := false; ; reported = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// Closing the file releases the lock.
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("cache: lock %s: %w", file.Name(), err)
		}
		if !reported {
			waiting()
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
