package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Folder is a data folder: an absolute path.
type Folder string

// Files in a data folder.
const (
	configFile     = "cluster.json"
	stateFile      = "state.json"
	lockFile       = "lock"
	socketFile     = "control.sock"
	egressFile     = "egress.sock"
	kubeconfigFile = "kubeconfig"
	auditFile      = "audit.log"
	supervisorLog  = "supervisor.log"
)

// markVariable marks all processes of a cluster with its data folder.
const markVariable = "KUBE_QUEUE_LOCALCLUSTER_DATA"

// maxSocketPath is the maximum length of a unix socket's path.
const maxSocketPath = 107

// ErrInUse means that a live cluster uses the folder.
var ErrInUse = errors.New("in use by a live cluster")

// OpenFolder returns the folder with an absolute path. The folder need not exist.
func OpenFolder(path string) (Folder, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("data folder %s: %w", path, err)
	}
	return Folder(absolute), nil
}

// Path returns a path in the folder.
func (f Folder) Path(elements ...string) string {
	return filepath.Join(append([]string{string(f)}, elements...)...)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (f Folder) Kubeconfig() string { return f.Path(kubeconfigFile) }

// AuditLog returns the path of the audit log.
func (f Folder) AuditLog() string { return f.Path(auditFile) }

// Logs returns the folder with the logs of the parts.
func (f Folder) Logs() string { return f.Path("logs") }

// Log returns the path of the log of a part.
func (f Folder) Log(name string) string {
	if name == "supervisor" {
		return f.Path(supervisorLog)
	}
	return filepath.Join(f.Logs(), name+".log")
}

// mark returns the environment entry of all processes of this cluster.
func (f Folder) mark() string { return markVariable + "=" + string(f) }

// socket returns the path of the supervisor's socket.
func (f Folder) socket() string { return f.unixSocket(socketFile) }

// egressSocket returns the path of the socket of the API server's proxy.
func (f Folder) egressSocket() string { return f.unixSocket(egressFile) }

// unixSocket returns a path in the folder or, if that path is too long, in the directory for temporary
// files.
func (f Folder) unixSocket(name string) string {
	path := f.Path(name)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(f))
	return filepath.Join(os.TempDir(), "localcluster-"+hex.EncodeToString(sum[:8])+"-"+name)
}

// removeSockets removes the sockets, which can be outside of the folder.
func (f Folder) removeSockets() error {
	if err := errors.Join(os.RemoveAll(f.socket()), os.RemoveAll(f.egressSocket())); err != nil {
		return fmt.Errorf("data folder %s: %w", f, err)
	}
	return nil
}

// Commands of fcntl for locks of an open file. A child process inherits them with the file, and
// their state can be queried without locking.
const (
	getLock = 36 // F_OFD_GETLK
	setLock = 37 // F_OFD_SETLK
)

// TryLock locks the folder for the caller, or returns ErrInUse. The lock is released when
// the file is closed or all processes that hold it have ended.
func (f Folder) TryLock() (*os.File, error) {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	file, err := os.OpenFile(f.Path(lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	err = syscall.FcntlFlock(file.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_WRLCK})
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("data folder %s is %w; stop it with 'localcluster down --data %s', or use another folder", f, ErrInUse, f)
	}
	return nil, fmt.Errorf("data folder: lock %s: %w", file.Name(), err)
}

// InUse reports whether a live cluster uses the folder.
func (f Folder) InUse() bool {
	file, err := os.OpenFile(f.Path(lockFile), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	held := syscall.Flock_t{Type: syscall.F_WRLCK}
	err = syscall.FcntlFlock(file.Fd(), getLock, &held)
	return err == nil && held.Type != syscall.F_UNLCK
}

// Prepare prepares the folder for a new cluster: it locks the folder, ends processes that an
// earlier cluster left running, empties the folder and writes the configuration. It rejects
// a folder with other contents.
func (f Folder) Prepare(config Config) (lock *os.File, err error) {
	if err := f.checkOurs(); err != nil {
		return nil, err
	}
	lock, err = f.TryLock()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if err := f.killStrays(); err != nil {
		return nil, err
	}
	if err := f.empty(); err != nil {
		return nil, err
	}
	return lock, f.saveConfig(config)
}

// saveConfig writes the configuration of the cluster in the folder.
func (f Folder) saveConfig(config Config) error {
	data, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(f.Path(configFile), data); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// checkOurs rejects a folder with contents that no cluster wrote, because Prepare empties the
// folder.
func (f Folder) checkOurs() error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	name := func(name string) func(os.DirEntry) bool { return func(e os.DirEntry) bool { return e.Name() == name } }
	entries = slices.DeleteFunc(entries, name(lockFile))
	if len(entries) > 0 && !slices.ContainsFunc(entries, name(configFile)) {
		return fmt.Errorf("data folder %s is not empty and was not created by localcluster; use another folder", f)
	}
	return nil
}

// empty removes everything except the lock and the configuration. The configuration marks the folder as a cluster's
// until it is replaced.
func (f Folder) empty() error {
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockFile || entry.Name() == configFile {
			continue
		}
		if err := f.remove(entry.Name()); err != nil {
			return err
		}
	}
	return f.removeSockets()
}

// remove removes files and folders in the folder.
func (f Folder) remove(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(f.Path(name)); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	return nil
}

// config reads the configuration that Prepare wrote.
func (f Folder) config() (Config, error) {
	var config Config
	data, err := os.ReadFile(f.Path(configFile))
	if err != nil {
		return config, fmt.Errorf("data folder: %w", err)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("data folder: %s: %w", configFile, err)
	}
	return config, nil
}

// writeFile replaces a file atomically.
func writeFile(path string, data []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
