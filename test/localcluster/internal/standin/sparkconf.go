package standin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sparkConf are Spark's properties by name.
type sparkConf map[string]string

// sparkSubmission has the arguments of spark-submit.
type sparkSubmission struct {
	deployMode, name string
	// main is the program to run: a jar, or a script of Python or R.
	main string
	conf sparkConf
}

// sparkFlags are the options of spark-submit without a value.
var sparkFlags = []string{"--load-spark-defaults", "--supervise", "--verbose", "-v"}

// parseSparkSubmission parses the arguments like spark-submit: options, then the program and its
// arguments. The last value of an option counts.
func parseSparkSubmission(args []string) (*sparkSubmission, error) {
	s := &sparkSubmission{conf: sparkConf{}}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := args[0]
		args = args[1:]
		if slices.Contains(sparkFlags, option) {
			continue
		}
		if len(args) == 0 {
			return nil, fmt.Errorf("option %s has no value", option)
		}
		value := args[0]
		args = args[1:]
		switch option {
		case "--deploy-mode":
			s.deployMode = value
		case "--name":
			s.name = value
		case "--conf", "-c":
			key, value, found := strings.Cut(value, "=")
			if !found {
				return nil, fmt.Errorf("--conf %s: want KEY=VALUE", key)
			}
			s.conf[key] = value
		}
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("application %s has no program to run", s.name)
	}
	s.main = args[0]
	if s.deployMode != "cluster" {
		return nil, fmt.Errorf("application %s: deploy mode %q: only cluster is supported", s.name, s.deployMode)
	}
	return s, nil
}

// onJVM reports whether the program runs in a JVM.
func (s *sparkSubmission) onJVM() bool {
	return !strings.HasSuffix(s.main, ".py") && !strings.HasSuffix(strings.ToLower(s.main), ".r")
}

// below returns the properties with this prefix, by the rest of the name.
func (c sparkConf) below(prefix string) map[string]string {
	found := map[string]string{}
	for key, value := range c {
		if name, is := strings.CutPrefix(key, prefix); is {
			found[name] = value
		}
	}
	return found
}

// whole returns a property that is an integer.
func (c sparkConf) whole(key string, without int) (int, error) {
	if c[key] == "" {
		return without, nil
	}
	n, err := strconv.Atoi(c[key])
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%s: must be an integer of 0 or more", key, c[key])
	}
	return n, nil
}

var sparkSize = regexp.MustCompile(`^([0-9]+)([kmgtp]?b?)$`)

// sizeShift has the factors of units as powers of two.
var sizeShift = map[string]uint{"k": 10, "m": 20, "g": 30, "t": 40, "p": 50, "b": 0}

// mebibytes returns a property that is a size, rounded down. A number without a unit is in MiB.
func (c sparkConf) mebibytes(key string, without int64) (int64, error) {
	text := c[key]
	if text == "" {
		return without, nil
	}
	match := sparkSize.FindStringSubmatch(strings.ToLower(text))
	if match == nil {
		return 0, fmt.Errorf("%s=%s: must be an integer with a unit, such as 512m", key, text)
	}
	n, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%s: %w", key, text, err)
	}
	unit := "m"
	if match[2] != "" {
		unit = match[2][:1]
	}
	shift := sizeShift[unit]
	if n > (1<<62)>>shift {
		return 0, fmt.Errorf("%s=%s: too large", key, text)
	}
	return n << shift >> 20, nil
}

// executors returns how many executors the driver requests at its start.
func (c sparkConf) executors() (int, error) {
	if c["spark.dynamicAllocation.enabled"] != "true" {
		return c.whole("spark.executor.instances", 2)
	}
	most := 0
	for _, key := range []string{"spark.executor.instances", "spark.dynamicAllocation.initialExecutors", "spark.dynamicAllocation.minExecutors"} {
		n, err := c.whole(key, 0)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}
