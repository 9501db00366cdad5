package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// row is a row of the table of targets: the target, what it does, and how long it took.
var row = regexp.MustCompile("(?m)^(\\| `make ([a-z0-9-]+)` \\|.*\\|)[^|]*\\|$")

// refresh writes the measured times of targets into the rows of a Markdown table. Rows of targets that
// were not measured stay. If only is not empty, it is the target that was run, and nothing but its total is
// written.
func (p *Profile) refresh(path, only string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	walls := map[string]time.Duration{}
	for _, u := range p.Usages {
		if !u.Test {
			walls[u.Name] = seconds(u.Wall)
		}
	}
	// Only make test and make test-all measure targets, and only the latter has this one.
	whole := "test"
	if walls["test-versions"] > 0 {
		whole = "test-all"
	}
	if len(walls) > 0 {
		walls[whole], _, _ = p.total()
	}
	if only != "" {
		walls = map[string]time.Duration{only: walls[whole]}
	}
	var written []string
	changed := row.ReplaceAllStringFunc(string(text), func(line string) string {
		parts := row.FindStringSubmatch(line)
		wall, measured := walls[parts[2]]
		if !measured {
			return line
		}
		written = append(written, parts[2])
		return parts[1] + " " + spoken(wall) + " |"
	})
	if len(written) == 0 {
		return fmt.Errorf("%s has no row of a measured target", path)
	}
	fmt.Printf("%s: the times of %s\n", path, strings.Join(written, ", "))
	return os.WriteFile(path, []byte(changed), 0o644)
}

// spoken is a duration as in "40 s" and "12 min".
func spoken(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}
