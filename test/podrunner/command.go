package podrunner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everywhere matches a flag with an address without a host.
var everywhere = regexp.MustCompile(`^(--[a-z-]+-bind-address=)(:\d+)$`)

// defaults are the default addresses of the programs. They are passed before all other flags, so that the programs
// listen on the pod's address unless a flag of the pod overrides it.
var defaults = []string{"--health-bind-address=:8081", "--metrics-bind-address=:8443"}

// command returns the command of the container, adapted to this machine.
func (p *pod) command(ctx context.Context, kubeconfig string) (*exec.Cmd, error) {
	container := p.object.Spec.Containers[0]
	name, tag := program(container.Image)
	mounts, err := p.mounts(ctx, container.VolumeMounts)
	if err != nil {
		return nil, err
	}
	environment := []string{"KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH"), "HOME=" + p.folder}
	var references []string
	for _, e := range container.Env {
		value, err := p.value(e)
		if err != nil {
			return nil, err
		}
		environment = append(environment, e.Name+"="+value)
		references = append(references, "$("+e.Name+")", value)
	}
	expand := strings.NewReplacer(references...)
	var args []string
	for _, word := range slices.Concat(defaults, container.Args) {
		args = append(args, mounts.Replace(everywhere.ReplaceAllString(expand.Replace(word), "${1}"+p.address+"${2}")))
	}
	command := exec.Command(filepath.Join(p.runner.options.folderOf(tag), name), args...)
	command.Env, command.Dir = environment, p.folder
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command, nil
}

// program returns the last part of an image's name without the digest, and the tag.
func program(image string) (name, tag string) {
	image, _, _ = strings.Cut(image, "@")
	name, tag, _ = strings.Cut(path.Base(image), ":")
	return name, tag
}

// mounts writes the mounted ConfigMaps to files. The result replaces mount paths with the paths of the files.
func (p *pod) mounts(ctx context.Context, mounts []corev1.VolumeMount) (*strings.Replacer, error) {
	var pairs []string
	for _, mount := range mounts {
		for _, volume := range p.object.Spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			config, err := p.runner.client.CoreV1().ConfigMaps(p.object.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
			}
			folder := filepath.Join(p.folder, "volume-"+volume.Name)
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return nil, err
			}
			for file, text := range config.Data {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
					return nil, err
				}
			}
			pairs = append(pairs, mount.MountPath, folder)
		}
	}
	return strings.NewReplacer(pairs...), nil
}

// value returns the value of an environment variable.
func (p *pod) value(variable corev1.EnvVar) (string, error) {
	if variable.ValueFrom == nil {
		return variable.Value, nil
	}
	if field := variable.ValueFrom.FieldRef; field != nil && field.FieldPath == "status.podIP" {
		return p.ip, nil
	}
	return "", fmt.Errorf("variable %s: valueFrom is supported only for status.podIP", variable.Name)
}

// port returns the number of a port by its name, or 0.
func (p *pod) port(name string) int32 {
	for _, known := range p.object.Spec.Containers[0].Ports {
		if known.Name == name {
			return known.ContainerPort
		}
	}
	return 0
}
