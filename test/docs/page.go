package docs

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Page is a Markdown file.
type Page struct {
	// Path is relative to the root of the repository.
	Path string
	// Commands are in the order of the page.
	Commands []Command
	// Manifests are the texts of the blocks ```yaml.
	Manifests []string
}

// Command is a command that a page shows.
type Command struct {
	Page string
	Line int
	// Text is the command as passed to a shell, without a trailing comment.
	Text string
	// Output is what the page shows below the command; empty if it shows nothing.
	Output string
	// Inline is true for a command in the text between blocks.
	Inline bool
}

// String says where the command is.
func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

// ReadPage reads a page of the repository.
func ReadPage(repository fs.FS, path string) (*Page, error) {
	text, err := fs.ReadFile(repository, path)
	if err != nil {
		return nil, err
	}
	page := &Page{Path: path}
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); {
		if !fence.MatchString(lines[i]) {
			end := i
			for end < len(lines) && !fence.MatchString(lines[end]) {
				end++
			}
			page.readText(lines[i:end], i+1)
			i = end
			continue
		}
		mark := fence.FindStringSubmatch(lines[i])
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
			end++
		}
		if end == len(lines) {
			return nil, fmt.Errorf("%s:%d: the block has no end", path, i+1)
		}
		body := slices.Clone(lines[i+1 : end])
		for j := range body {
			body[j] = strings.TrimPrefix(body[j], mark[1])
		}
		page.readBlock(mark[2], body, i+2)
		i = end + 1
	}
	return page, nil
}

var fence = regexp.MustCompile("^( *)```([a-z]*)$")

func (p *Page) add(line int, text, output string, inline bool) {
	p.Commands = append(p.Commands, Command{Page: p.Path, Line: line, Text: text, Output: output, Inline: inline})
}

// readBlock reads a block. first is the number of its first line.
func (p *Page) readBlock(language string, lines []string, first int) {
	switch {
	case language == "sh" || language == "bash" || language == "shell":
		p.readScript(lines, first)
	case language == "yaml":
		p.Manifests = append(p.Manifests, strings.Join(lines, "\n")+"\n")
	case language == "console" || slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "$ ") }):
		p.readSession(lines, first)
	}
}

// readScript reads commands, which can have several lines.
func (p *Page) readScript(lines []string, first int) {
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && continues(strings.Join(lines[i:end], "\n")) {
			end++
		}
		if text := withoutComment(strings.Join(lines[i:end], "\n")); text != "" {
			p.add(first+i, text, "", false)
		}
		i = end
	}
}

// continues reports whether the next line is part of the same command.
func continues(text string) bool {
	return strings.HasSuffix(text, "\\") || strings.Count(text, "'")%2 == 1
}

func withoutComment(text string) string {
	return strings.TrimSpace(comment.ReplaceAllString(text, ""))
}

// A comment is at the end of a command or on its own line.
var comment = regexp.MustCompile(`(?:^| +)# [^'"]*$`)

// readSession reads commands after a prompt, each with its output.
func (p *Page) readSession(lines []string, first int) {
	for i := 0; i < len(lines); i++ {
		text, isCommand := strings.CutPrefix(lines[i], "$ ")
		if !isCommand {
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "$ ") {
			end++
		}
		p.add(first+i, text, strings.Join(lines[i+1:end], "\n"), false)
	}
}

// readText finds commands in text and tables.
func (p *Page) readText(lines []string, first int) {
	text := strings.Join(lines, "\n")
	for _, at := range quoted.FindAllStringSubmatchIndex(text, -1) {
		words := strings.Fields(text[at[2]:at[3]])
		if isCommand(words) {
			p.add(first+strings.Count(text[:at[0]], "\n"), strings.Join(words, " "), "", true)
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// programs are the programs of commands in text, with the minimum number of words of a command: text names some
// programs together with a subcommand, such as "kubectl describe".
var programs = map[string]int{
	"kubectl": 3, "helm": 3, "go": 3, "git": 2, "make": 2, "sed": 2, "sha256sum": 2, "diff": 2, "curl": 2, "jq": 2,
	"ctr": 3, "podman": 3, "docker": 3, "skopeo": 3, "kube-queue-simulator": 2, "kube-queue-controller": 2, "job-extensions": 2,
}

func isCommand(words []string) bool {
	if len(words) == 0 {
		return false
	}
	least, known := programs[words[0]]
	switch {
	case known:
		return len(words) >= least
	case words[0] == "kind":
		return len(words) >= 2 && (words[1] == "load" || words[1] == "create")
	}
	return len(words) >= 2 && strings.HasPrefix(words[0], "bin/")
}

// ReadPages reads all pages whose commands must be executed.
func ReadPages(repository fs.FS) ([]*Page, error) {
	var pages []*Page
	read := func(path string) error {
		page, err := ReadPage(repository, path)
		if err == nil {
			pages = append(pages, page)
		}
		return err
	}
	for _, path := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"} {
		if err := read(path); err != nil {
			return nil, err
		}
	}
	for _, folder := range []string{"docs", "charts"} {
		err := fs.WalkDir(repository, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".md") {
				return err
			}
			return read(path)
		})
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}
