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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sampleInterval is short compared with the tests that are worth a look. A sample takes milliseconds.
const sampleInterval = 2 * time.Second

// Usage is what a test binary or a step took. The times are in seconds.
type Usage struct {
	// Name is the import path of the tested package, or the name of the step.
	Name string    `json:"name"`
	Test bool      `json:"test"`
	From time.Time `json:"from"`
	Wall float64   `json:"wall"`
	// CPU is the processor time of all processes, Clusters the number of started clusters.
	CPU      float64  `json:"cpu"`
	Clusters int      `json:"clusters"`
	Failed   bool     `json:"failed,omitempty"`
	Samples  []Sample `json:"samples,omitempty"`
}

// Sample is the processor time of all processes of a test binary since its start, in seconds.
type Sample struct {
	At  time.Time `json:"at"`
	CPU float64   `json:"cpu"`
}

// measure runs a command, with its input and output, and appends its usage to the profile.
func measure(folder, name string, command []string, test bool) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The processes of a killed test must not go on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig follows the thread
	clusters := map[int]bool{}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if test {
		var err error
		if name, err = tested(command[0]); err != nil {
			return err
		}
	}
	usage := Usage{Name: name, Test: test, From: time.Now()}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	for {
		select {
		case s := <-signals: // a timeout of go test, or Ctrl-C
			_ = cmd.Process.Signal(s)
		case <-tick.C:
			if folder == "" {
				continue
			}
			cpu := processorTime(cmd.Process.Pid, clusters)
			if test {
				usage.Samples = append(usage.Samples, Sample{At: time.Now(), CPU: cpu})
			}
		case err := <-ended:
			if folder == "" {
				return err
			}
			usage.Wall = time.Since(usage.From).Seconds()
			usage.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
			usage.Clusters, usage.Failed = len(clusters), err != nil
			return errors.Join(err, appendLine(filepath.Join(folder, usagesFile), usage))
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

func appendLine(path string, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// ticksPerSecond is the unit of times in /proc, which is the same on all platforms of Linux.
const ticksPerSecond = 100

// processorTime returns the processor time of a process and its descendants, in seconds: what each has
// used, and what its children that have exited had used. It adds the processes of etcd to clusters:
// each cluster has one.
func processorTime(root int, clusters map[int]bool) float64 {
	processes, _ := os.ReadDir("/proc")
	ticks, children, etcd := map[int]int{}, map[int][]int{}, map[int]bool{}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue // no process
		}
		content, err := os.ReadFile(filepath.Join("/proc", process.Name(), "stat"))
		if err != nil {
			continue // it has exited
		}
		// The name in brackets may contain spaces. After it: state, parent, and from the 12th field
		// utime, stime, cutime and cstime; see proc(5).
		text := string(content)
		end := strings.LastIndexByte(text, ')')
		fields := strings.Fields(text[end+1:])
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
		etcd[pid] = strings.HasSuffix(text[:end], "(etcd")
		for _, field := range fields[11:15] {
			n, _ := strconv.Atoi(field)
			ticks[pid] += n
		}
	}
	sum := 0
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		sum += ticks[pid]
		if etcd[pid] {
			clusters[pid] = true
		}
		queue = append(queue, children[pid]...)
	}
	return float64(sum) / ticksPerSecond
}
