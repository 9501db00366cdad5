package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// operator is an unmodified operator that a cluster can run. In its arguments, environment and
// configuration, ${NAME} stands for a value of variables.
type operator struct {
	component build.Component
	// namespace is created for the operator and for the jobs that show that it runs.
	namespace string
	// ports are the names of its ports. They are allocated as NAME-PORT. An operator with a port
	// "webhook" gets a certificate in its TMPDIR.
	ports []string
	// needs are operators that it requires. They run with it.
	needs []string
	// yields has a kind that it leaves to another operator if that is running too.
	yields map[string]string
	// since is the first version of Kubernetes that accepts its CRDs, if not all known versions do.
	since string
	// companion is a stand-in that runs with it, as a separate user.
	companion companion
	// objects are created before it starts, by API path.
	objects map[string]object
	// config is its configuration file.
	config string
	// args and env are those of its program. env is in addition to KUBECONFIG and TMPDIR.
	args, env []string
	// webhookPrefix precedes the names of the webhook configurations of its module.
	webhookPrefix string
	// before does what else is needed before it starts.
	before func(context.Context, *setup) error
	// beforeJobs does what its jobs need, once its webhooks respond.
	beforeJobs func(context.Context, *setup) error
	// jobs are created to check that it acts on them.
	jobs []probe
}

type companion struct {
	name string
	args []string
	// url responds when it is ready, if it is a server.
	url string
}

// OperatorNames returns the names of the known operators.
func OperatorNames() []string { return slices.Sorted(maps.Keys(operators)) }

// allOperators returns the requested operators and those that they need.
func (c Config) allOperators() []string {
	all := slices.Clone(c.Operators)
	for i := 0; i < len(all); i++ {
		for _, name := range operators[all[i]].needs {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Components returns the components of a cluster with this configuration.
func (c Config) Components() []build.Component {
	components := []build.Component{controlPlaneComponent(c.kubernetes())}
	if !c.OnlyAPI {
		components = append(components, kwokComponent)
	}
	for _, name := range c.allOperators() {
		components = append(components, operators[name].component)
	}
	return components
}

// AllComponents returns all components, with the control plane of a version of Kubernetes.
func AllComponents(kubernetes string) []build.Component {
	return Config{Kubernetes: kubernetes, Operators: OperatorNames()}.Components()
}

// OperatorInfo is the origin of an operator and its CRDs.
type OperatorInfo struct {
	Name string `json:"name"`
	// Component is the folder in components/ whose module pins the operator's version.
	Component string `json:"component"`
	// Module contains the operator's CRDs.
	Module string `json:"module"`
	// CRDs are slash-separated paths of files in the module.
	CRDs []string `json:"crds"`
}

// Accepted returns the operators whose CRDs the version of Kubernetes accepts, sorted by name.
func (c Config) Accepted() []OperatorInfo {
	var all []OperatorInfo
	for _, name := range OperatorNames() {
		if c.accepts(name) {
			component := operators[name].component
			crds := component.Files[0]
			all = append(all, OperatorInfo{Name: name, Component: component.Name, Module: crds.Module, CRDs: crds.Paths})
		}
	}
	return all
}

// operatorComponent returns the component of an operator. Its first files are the CRDs, in a folder of the
// module.
func operatorComponent(name, pkg, binary, module, crdFolder string, crds []string, more ...build.ModuleFiles) build.Component {
	files := build.ModuleFiles{Module: module, Into: "crds"}
	for _, file := range crds {
		files.Paths = append(files.Paths, path.Join(crdFolder, file+".yaml"))
	}
	return build.Component{Name: name, Package: pkg, Binary: binary, LDFlags: "-s -w", Files: append([]build.ModuleFiles{files}, more...)}
}

// in returns the operator without what it leaves to another operator of the cluster: the CRDs, flags and jobs of a
// kind. The two would serve different versions of one CRD.
func (o operator) in(c Config) operator {
	for other, kind := range o.yields {
		if slices.Contains(c.Operators, other) {
			names := func(text string) bool { return strings.Contains(text, kind) }
			o.component.Files = slices.Clone(o.component.Files)
			o.component.Files[0].Paths = slices.DeleteFunc(slices.Clone(o.component.Files[0].Paths), names)
			o.args = slices.DeleteFunc(slices.Clone(o.args), names)
			o.jobs = slices.DeleteFunc(slices.Clone(o.jobs), func(p probe) bool { return names(p.plural) })
		}
	}
	return o
}

// startOperator creates what an operator needs and returns its parts, which are started one after another.
func (s *setup) startOperator(ctx context.Context, name string) ([]part, error) {
	o := operators[name].in(s.config)
	built := s.config.Built[o.component.Name]
	expand := s.expander(name, o)
	if err := os.MkdirAll(s.temporary(name), 0o700); err != nil {
		return nil, err
	}
	if o.config != "" {
		if err := writeFile(s.configFile(name), []byte(expand(o.config)[0])); err != nil {
			return nil, err
		}
	}
	if err := s.createIfMissing(ctx, "/api/v1/namespaces", named(o.namespace)); err != nil {
		return nil, err
	}
	for path, object := range o.objects {
		if err := s.createIfMissing(ctx, path, object); err != nil {
			return nil, err
		}
	}
	if err := s.installCRDs(ctx, filepath.Join(built, "crds"), o.component.Files[0].Paths); err != nil {
		return nil, err
	}
	if err := s.prepareWebhooks(ctx, name, o, filepath.Join(built, webhookFolder)); err != nil {
		return nil, err
	}
	if o.before != nil {
		if err := o.before(ctx, s); err != nil {
			return nil, err
		}
	}
	own := s.part(name, rankOperator, filepath.Join(built, o.component.Binary), s.actsOn(name, o), expand(o.args...),
		append(expand(o.env...), "KUBECONFIG="+s.credentials.kubeconfig(name), "TMPDIR="+s.temporary(name))...)
	if o.companion.name == "" {
		return []part{own}, nil
	}
	return []part{s.standIn(o.companion, expand), own}, nil
}

// temporary returns the folder for the files of an operator.
func (s *setup) temporary(name string) string { return s.folder.Path("tmp", name) }

func (s *setup) configFile(name string) string {
	return filepath.Join(s.temporary(name), "config.yaml")
}

// variables returns the values that an operator's texts can refer to. For each port, these are its address and, as
// PORTPort, its number.
func (s *setup) variables(name string, o operator) map[string]string {
	variables := map[string]string{
		"tmp":        s.temporary(name),
		"config":     s.configFile(name),
		"apiPort":    strconv.Itoa(s.ports[portAPIServer]),
		"podRunTime": s.config.PodRunTime.String(),
	}
	for _, port := range o.ports {
		variables[port] = s.ports.address(name + "-" + port)
		variables[port+"Port"] = strconv.Itoa(s.ports[name+"-"+port])
	}
	return variables
}

func (s *setup) expander(name string, o operator) func(texts ...string) []string {
	variables := s.variables(name, o)
	return func(texts ...string) []string {
		expanded := make([]string, len(texts))
		for i, text := range texts {
			expanded[i] = os.Expand(text, func(key string) string { return variables[key] })
		}
		return expanded
	}
}

// ourselves returns a path of this program that stays valid while it runs. The file itself may be deleted earlier: go
// run removes the executable when the command ends.
func ourselves() string { return fmt.Sprintf("/proc/%d/exe", os.Getpid()) }

// standIn returns a part that runs a stand-in as the user with its name.
func (s *setup) standIn(c companion, expand func(...string) []string) part {
	var ready check
	if c.url != "" {
		ready = healthy(expand(c.url)[0])
	}
	return s.part(c.name, rankOperator, ourselves(), ready, append([]string{standin.Command, c.name}, expand(c.args...)...),
		"KUBECONFIG="+s.credentials.kubeconfig(c.name))
}

func named(name string) object { return object{"metadata": object{"name": name}} }
