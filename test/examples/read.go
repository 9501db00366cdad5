package examples

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// Collection contains the documents of a source.
type Collection struct {
	Source
	Module   clustertest.Module
	Examples []Example
}

// Example is a document of a queued kind.
type Example struct {
	// File is its path in the module, followed by the number of the example if the file contains
	// several examples.
	File string
	Kind framework.Kind
	// Object is nil if the document cannot be parsed. Fault is then the error.
	Object *unstructured.Unstructured
	Fault  string
}

// Read reads all documents of a source, in the order of their files.
func Read(source Source, module clustertest.Module) (*Collection, error) {
	c := &Collection{Source: source, Module: module}
	for _, folder := range source.Folders {
		if err := fs.WalkDir(os.DirFS(module.Dir), folder, c.visit); err != nil {
			return nil, fmt.Errorf("reading the examples of %s: %w", source.Operator, err)
		}
	}
	return c, nil
}

func (c *Collection) visit(file string, entry fs.DirEntry, err error) error {
	if err != nil || entry.IsDir() {
		return err
	}
	var cut func([]byte) ([][]byte, error)
	switch path.Ext(file) {
	case ".yaml", ".yml":
		cut = documents
	case ".md":
		cut = fenced
	}
	if cut == nil || path.Ext(file) == ".md" && !c.Markdown {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(c.Module.Dir, filepath.FromSlash(file)))
	if err != nil {
		return err
	}
	parts, err := cut(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c.add(file, parts)
	return nil
}

// add adds the documents of a file.
func (c *Collection) add(file string, parts [][]byte) {
	var found []Example
	for _, part := range parts {
		if example, is := take(part); is {
			found = append(found, example)
		}
	}
	for i := range found {
		found[i].File = file
		if len(found) > 1 {
			found[i].File = fmt.Sprintf("%s#%d", file, i+1)
		}
	}
	c.Examples = append(c.Examples, found...)
}

// written finds the kind of a document that cannot be parsed.
var written = regexp.MustCompile(`(?m)^kind: *"?(\w+)"?`)

// take parses a document and reports whether it is an example.
func take(text []byte) (Example, bool) {
	var value map[string]any
	err := yaml.Unmarshal(text, &value)
	if err != nil {
		if match := written.FindSubmatch(text); match != nil {
			kind, queued := find(func(k framework.Kind) bool { return k.Kind == string(match[1]) })
			return Example{Kind: kind, Fault: fault(err)}, queued
		}
		return Example{}, false
	}
	object := &unstructured.Unstructured{Object: value}
	if object.GetKind() == "" {
		return Example{}, false
	}
	// Accept any version. The API server rejects versions that it no longer serves.
	kind, queued := find(func(k framework.Kind) bool { return k.GroupKind() == object.GroupVersionKind().GroupKind() })
	return Example{Kind: kind, Object: object}, queued
}

// fault returns the error without the prefixes of the parsers.
func fault(err error) string {
	return strings.TrimPrefix(oneLine(err.Error()), "error converting YAML to JSON: yaml: ")
}

// documents splits a YAML file.
func documents(text []byte) ([][]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var parts [][]byte
	for {
		part, err := reader.Read()
		if err == io.EOF {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
}

// fence begins or ends a block in Markdown.
var fence = regexp.MustCompile("^ *```")

// fenced returns the documents in the code blocks of a Markdown file.
func fenced(text []byte) ([][]byte, error) {
	var parts [][]byte
	var block *bytes.Buffer
	for line := range bytes.Lines(text) {
		switch {
		case !fence.Match(line) && block != nil:
			block.Write(line)
		case !fence.Match(line):
		case block == nil:
			block = &bytes.Buffer{}
		default:
			cut, err := documents(block.Bytes())
			if err != nil {
				return nil, err
			}
			parts, block = append(parts, cut...), nil
		}
	}
	return parts, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// name returns the name of the example, or its generateName.
func (e *Example) name() string {
	if e.Object == nil {
		return ""
	}
	return e.Object.GetName() + e.Object.GetGenerateName()
}
