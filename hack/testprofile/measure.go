package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// sampleInterval is short compared with the tests of interest. A sample takes milliseconds.
const sampleInterval = 2 * time.Second

// Usage is what a target, a package or a test took. The times are in seconds.
type Usage struct {
	// Name is the target, the import path of the tested package, or both the package and the test.
	Name string `json:"name"`
	// Test is true for a package and false for a target.
	Test bool      `json:"test"`
	From time.Time `json:"from"`
	Wall float64   `json:"wall"`
	// CPU is the processor time of all processes, Clusters the number of started clusters.
	CPU      float64 `json:"cpu"`
	Clusters int     `json:"clusters"`
	Failed   bool    `json:"failed,omitempty"`
	// Samples are from the start to the end.
	Samples []Sample `json:"samples,omitempty"`
}

// Sample is the processor time of all processes since the start, in seconds.
type Sample struct {
	At  time.Time `json:"at"`
	CPU float64   `json:"cpu"`
}

// measure runs a command, with its input and output, and appends its usage to the profile.
func measure(folder string, usage Usage, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The processes of a killed test must not keep running.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig follows the thread
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	usage.From = time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	usage.Samples = []Sample{{At: usage.From}}
	clusters := map[int]bool{}
	for {
		select {
		case s := <-signals: // a timeout of go test, or Ctrl-C
			_ = cmd.Process.Signal(s)
		case at := <-tick.C:
			usage.Samples = append(usage.Samples, Sample{At: at, CPU: processorTime(cmd.Process.Pid, clusters)})
		case err := <-ended:
			if folder == "" {
				return err
			}
			usage.Wall = time.Since(usage.From).Seconds()
			usage.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
			usage.Samples = append(usage.Samples, Sample{At: usage.end(), CPU: usage.CPU})
			usage.Clusters, usage.Failed = len(clusters), err != nil
			return errors.Join(err, record(folder, usage))
		}
	}
}

// tested returns the import path of the package that a test binary tests.
func tested(binary string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(info.Path, ".test"), nil
}

// record appends a usage to the profile in one write, because several programs write to it.
func record(folder string, usage Usage) error {
	line, err := json.Marshal(usage)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, usagesFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// ticksPerSecond is the unit of times of a process, which is the same on every Linux.
const ticksPerSecond = 100

// processorTime returns the processor time of a process and its descendants, in seconds, including that of children
// that have exited. It adds the processes of etcd to clusters, because each cluster has one.
func processorTime(root int, clusters map[int]bool) float64 {
	processes, _ := procfs.AllProcs() // without /proc, nothing is measured
	stats, children := map[int]procfs.ProcStat{}, map[int][]int{}
	for _, process := range processes {
		stat, err := process.Stat()
		if err != nil {
			continue // it has exited
		}
		stats[stat.PID] = stat
		children[stat.PPID] = append(children[stat.PPID], stat.PID)
	}
	ticks := 0
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		stat := stats[queue[0]]
		ticks += int(stat.UTime+stat.STime) + stat.CUTime + stat.CSTime
		if stat.Comm == "etcd" {
			clusters[stat.PID] = true
		}
		queue = append(queue, children[queue[0]]...)
	}
	return float64(ticks) / ticksPerSecond
}
