package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// installCRDs applies the definitions in the files. A file is named
// GROUP_PLURAL.yaml, as controller-gen names it.
func (s *setup) installCRDs(ctx context.Context, files []string) error {
	for _, file := range files {
		yaml, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := crdName(file)
		if err := s.api.apply(ctx, crdsPath+name, yaml); err != nil {
			return fmt.Errorf("apply definition %s: %w", name, err)
		}
	}
	for _, file := range files {
		name := crdName(file)
		err := waitFor(ctx, "definition "+name, func(ctx context.Context) error { return s.established(ctx, name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func crdName(file string) string {
	group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
	return plural + "." + group
}

func (s *setup) established(ctx context.Context, name string) error {
	var crd struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := s.api.get(ctx, crdsPath+name, &crd); err != nil {
		return err
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == "Established" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("definition %s is not established: %+v", name, crd.Status.Conditions)
}
