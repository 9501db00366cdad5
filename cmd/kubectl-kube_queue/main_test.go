package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestASecondSignalEndsTheProgram(t *testing.T) {
	const plugin = "TEST_AS_PLUGIN"
	if os.Getenv(plugin) != "" {
		os.Args = []string{"kubectl-kube_queue", "convert", "-f", "-"}
		main()
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), plugin+"=1")
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil { // more than a pipe holds, so the program reads it
		_, err = input.Write([]byte(strings.Repeat("#\n", 100_000)))
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick, late := time.Tick(100*time.Millisecond), time.After(30*time.Second); ; {
		select {
		case <-ended:
			return
		case <-tick:
			_ = cmd.Process.Signal(os.Interrupt)
		case <-late:
			_ = cmd.Process.Kill()
			t.Fatal("it reads its input after many signals")
		}
	}
}
