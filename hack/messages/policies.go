package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// answer is a message with which the API server refuses a request.
type answer struct {
	text string
	// file that has it, below the root of the repository.
	file string
}

// answers returns the messages of all policies and CRDs in the folders, which are below
// root.
func answers(root string, folders ...string) ([]answer, error) {
	var all []answer
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("folder %s has no manifest", folder)
		}
		for _, file := range files {
			found, err := answersOf(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, text := range found {
				all = append(all, answer{text, filepath.ToSlash(filepath.Join(folder, filepath.Base(file)))})
			}
		}
	}
	return all, nil
}

// answersOf returns the messages in a file of manifests.
func answersOf(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var texts []string
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var object map[string]any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return texts, nil
		} else if err != nil {
			return nil, err
		}
		found, err := refusals(object)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", object["kind"], err)
		}
		texts = append(texts, found...)
	}
}

// refusals finds the rules in an object, wherever they are, and returns what they answer.
func refusals(value any) ([]string, error) {
	var texts []string
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			found, err := refusals(element)
			if err != nil {
				return nil, err
			}
			texts = append(texts, found...)
		}
	case map[string]any:
		for key, field := range v {
			rules, is := field.([]any)
			if is && (key == "validations" || key == "x-kubernetes-validations") {
				for _, rule := range rules {
					found, err := refusal(rule)
					if err != nil {
						return nil, err
					}
					texts = append(texts, found...)
				}
				continue
			}
			found, err := refusals(field)
			if err != nil {
				return nil, err
			}
			texts = append(texts, found...)
		}
	}
	return texts, nil
}

// refusal returns what a rule answers.
func refusal(rule any) ([]string, error) {
	fields, _ := rule.(map[string]any)
	if expression, is := fields["messageExpression"].(string); is {
		texts, err := templates(expression)
		if err != nil {
			return nil, fmt.Errorf("messageExpression %q: %w", expression, err)
		}
		return texts, nil
	}
	if text, is := fields["message"].(string); is && strings.TrimSpace(text) != "" {
		return []string{escape(strings.Join(strings.Fields(text), " "))}, nil
	}
	return nil, fmt.Errorf("a rule has neither message nor messageExpression, so its users read an expression; give it one: %v", fields)
}

// templates returns the texts that a CEL expression of a message may come to: texts in
// quotes that are added, with a verb for everything else, and both branches of a condition.
func templates(expression string) ([]string, error) {
	tokens, err := tokenize(expression)
	if err != nil {
		return nil, err
	}
	texts, err := conditional(tokens)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		if !prose.MatchString(verb.ReplaceAllString(text, "")) {
			return nil, fmt.Errorf("no text of the message is found; write it as texts in quotes that are added")
		}
	}
	return texts, nil
}

// token is a text in quotes, or a character that is outside of quotes.
type celToken struct {
	text   string
	quoted bool
}

func tokenize(expression string) ([]celToken, error) {
	var tokens []celToken
	for rest := expression; rest != ""; {
		c := rest[0]
		if c != '\'' && c != '"' {
			if !strings.ContainsRune(" \t\n", rune(c)) {
				tokens = append(tokens, celToken{text: rest[:1]})
			}
			rest = rest[1:]
			continue
		}
		end := strings.IndexByte(rest[1:], c)
		if end < 0 {
			return nil, errors.New("a quote is not closed")
		}
		text := rest[1 : 1+end]
		if strings.Contains(text, `\`) {
			return nil, errors.New(`a text holds a \, which is not supported; use the other kind of quotes`)
		}
		tokens = append(tokens, celToken{text, true})
		rest = rest[end+2:]
	}
	return tokens, nil
}

// conditional reads CONDITION ? TEXT : TEXT, or a sum.
func conditional(tokens []celToken) ([]string, error) {
	parts := split(tokens, "?")
	if len(parts) == 1 {
		return sum(tokens)
	}
	rest := slices.Concat(parts[1:]...)
	if len(parts) > 2 {
		return nil, errors.New("a condition within a condition is not supported; use parentheses")
	}
	branches := split(rest, ":")
	if len(branches) != 2 {
		return nil, errors.New("a condition has to have two branches")
	}
	var texts []string
	for _, branch := range branches {
		found, err := conditional(branch)
		if err != nil {
			return nil, err
		}
		texts = append(texts, found...)
	}
	return texts, nil
}

// sum reads TEXT + TEXT ....
func sum(tokens []celToken) ([]string, error) {
	texts := []string{""}
	for _, operand := range split(tokens, "+") {
		forms, err := operandForms(operand)
		if err != nil {
			return nil, err
		}
		var longer []string
		for _, text := range texts {
			for _, form := range forms {
				longer = append(longer, text+form)
			}
		}
		texts = longer
	}
	return texts, nil
}

func operandForms(tokens []celToken) ([]string, error) {
	last := len(tokens) - 1
	switch {
	case len(tokens) == 0:
		return nil, errors.New("an operand is missing")
	case last == 0 && tokens[0].quoted:
		return []string{escape(tokens[0].text)}, nil
	case is(tokens[0], "(") && is(tokens[last], ")") && closing(tokens) == last:
		return conditional(tokens[1:last])
	default:
		return []string{"%s"}, nil
	}
}

func is(t celToken, text string) bool { return !t.quoted && t.text == text }

// closing returns the place of the parenthesis that closes the first one.
func closing(tokens []celToken) int {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.quoted:
		case strings.Contains("([{", t.text):
			depth++
		case strings.Contains(")]}", t.text):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// split cuts at an operator that is outside of all parentheses. The ? of an optional field
// is no operator.
func split(tokens []celToken, operator string) [][]celToken {
	var parts [][]celToken
	depth, begin := 0, 0
	for i, t := range tokens {
		switch {
		case t.quoted:
		case strings.Contains("([{", t.text):
			depth++
		case strings.Contains(")]}", t.text):
			depth--
		case depth == 0 && t.text == operator && (operator != "?" || i == 0 || !is(tokens[i-1], ".")):
			parts, begin = append(parts, tokens[begin:i]), i+1
		}
	}
	return append(parts, tokens[begin:])
}
