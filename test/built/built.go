// Package built builds the programs that tests run, once for all packages and runs. It does not relink a program that
// is up to date, which saves seconds in each package.
//
// The programs are in bin/built, in a folder for each set of flags and packages.
package built

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Programs builds programs of a module in this repository, with these flags and packages of go build, and returns
// their folder.
func Programs(ctx context.Context, module string, flagsAndPackages ...string) (folder string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(fmt.Sprintf("%q %q", module, flagsAndPackages)))
	folder = filepath.Join(root, "bin", "built", hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// Packages that run at the same time must not write the same file.
	unlock, err := lock(folder)
	if err != nil {
		return "", err
	}
	args := append([]string{"build", "-C", filepath.Join(root, module), "-o", folder + string(filepath.Separator)}, flagsAndPackages...)
	out, err := Go(ctx, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return folder, errors.Join(err, unlock())
}

func lock(folder string) (unlock func() error, err error) {
	file, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return file.Close, nil
}

// Root returns the folder of the main module.
func Root(ctx context.Context) (string, error) {
	out, err := Go(ctx, "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	dir := filepath.Dir(strings.TrimSpace(string(out)))
	if _, err := os.Stat(filepath.Join(dir, "deploy", "crds")); err != nil {
		return "", fmt.Errorf("run this command in a clone of kube-queue: %w", err)
	}
	return dir, nil
}

// Go returns a go command that ignores the GOFLAGS of the caller.
func Go(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	return cmd
}
