package rights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// manifest has the needed fields of all RBAC objects.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule `json:"rules"`
	RoleRef           rbacv1.RoleRef      `json:"roleRef"`
	Subjects          []rbacv1.Subject    `json:"subjects"`
}

// Granted returns the rights that the manifests in the folders together grant the programs.
func Granted(folders ...string) ([]Right, error) {
	var files []string
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no manifests", folder)
		}
		files = append(files, found...)
	}
	var all []manifest
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read, err := manifests(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, read...)
	}
	var granted []Right
	for _, binding := range all {
		for _, subject := range binding.Subjects {
			if subject.Kind != rbacv1.ServiceAccountKind || !slices.Contains(Programs, subject.Name) {
				continue
			}
			more, err := bound(binding, subject.Name, all)
			if err != nil {
				return nil, err
			}
			granted = append(granted, more...)
		}
	}
	if len(granted) == 0 {
		return nil, fmt.Errorf("the manifests in %s grant nothing", strings.Join(folders, " and "))
	}
	slices.SortFunc(granted, compare)
	return slices.Compact(granted), nil
}

func manifests(text []byte) ([]manifest, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []manifest
	for {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

// bound returns the rights that a binding grants a program.
func bound(binding manifest, program string, all []manifest) ([]Right, error) {
	namespace := ""
	if binding.Kind == "RoleBinding" {
		namespace = binding.Namespace
	}
	var rights []Right
	found := false
	for _, role := range all {
		if role.Kind != binding.RoleRef.Kind || role.Name != binding.RoleRef.Name || role.Kind == "Role" && role.Namespace != namespace {
			continue
		}
		found = true
		for _, rule := range role.Rules {
			for _, one := range validation.BreakdownRule(rule) {
				if len(one.Resources) == 0 {
					continue // it is about URLs
				}
				rights = append(rights, Right{
					Program: program, Verb: one.Verbs[0], Group: one.APIGroups[0], Resource: one.Resources[0],
					Namespace: namespace, Name: strings.Join(one.ResourceNames, ""),
				})
			}
		}
	}
	if !found { // a built-in role
		return nil, fmt.Errorf("%s %s: there is no %s %s beside it", binding.Kind, binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
	}
	return rights, nil
}
