package standin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// SparkSubmit simulates spark-submit in cluster mode. It creates the driver's pod with the
// resources that Spark would set. It omits volumes, environment, Services and dependencies of the
// application.
const SparkSubmit = "spark-submit"

const (
	sparkRoleLabel     = "spark-role"
	sparkAppLabel      = "spark-app-selector"
	sparkExecutorLabel = "spark-exec-id"

	// sparkExecutorsAnnotation is the annotation of the driver's pod with its executorPlan. Spark
	// uses a ConfigMap for the properties.
	sparkExecutorsAnnotation = "localcluster.kube-queue.dev/spark-executors"
)

// executorPlan describes the executors of a driver.
type executorPlan struct {
	Count int `json:"count"`
	// NamePrefix precedes the number in the names of executors.
	NamePrefix string `json:"namePrefix"`
	// Keep keeps executors after their end.
	Keep bool `json:"keep,omitempty"`
	// Pod is the pod of an executor without name, number and owner.
	Pod sparkPod `json:"pod"`
}

// sparkPod has the fields of a pod that are written. Other fields of a template are kept.
type sparkPod struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       object   `json:"spec"`
}

func submitSpark(ctx context.Context, client *kube.Client, args []string) error {
	s, err := parseSparkSubmission(args)
	if err != nil {
		return err
	}
	templates, err := s.readTemplates()
	if err != nil {
		return err
	}
	pod, err := s.driverPod(templates, sparkID())
	if err != nil {
		return fmt.Errorf("application %s: %w", s.name, err)
	}
	err = client.Create(ctx, podsPath(s.namespace()), pod)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		// The operator searches the output for this text.
		return fmt.Errorf("driver pod %s/%s: code=409: %w", s.namespace(), pod.Metadata.Name, err)
	}
	return err
}

// sparkID returns the ID of a new application.
func sparkID() string { return "spark-" + strings.ToLower(rand.Text()) }

func (s *sparkSubmission) namespace() string {
	return cmp.Or(s.conf["spark.kubernetes.namespace"], "default")
}

// readTemplates reads the pod templates of the roles. It removes the templates that the operator wrote, because the
// operator does not.
func (s *sparkSubmission) readTemplates() (map[sparkRole]sparkPod, error) {
	templates := map[sparkRole]sparkPod{}
	for _, role := range []sparkRole{sparkDriverRole, sparkExecutorRole} {
		path := s.conf[role.kubernetes("podTemplateFile")]
		if path == "" {
			continue
		}
		var template sparkPod
		text, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(text, &template)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role.kubernetes("podTemplateFile"), err)
		}
		templates[role] = template
		if err := removeOperatorsTemplate(path); err != nil {
			return nil, err
		}
	}
	return templates, nil
}

// operatorsTemplate matches the paths of templates written by the operator. They do not depend on
// TMPDIR. The name of the folder is the ID of a submission.
var operatorsTemplate = regexp.MustCompile(`^/tmp/spark/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/(driver|executor)-pod-template\.yaml$`)

func removeOperatorsTemplate(path string) error {
	if !operatorsTemplate.MatchString(path) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// This succeeds only once the last template is removed.
	_ = os.Remove(filepath.Dir(path))
	return nil
}

// driverPod returns the driver's pod, with the plan of its executors.
func (s *sparkSubmission) driverPod(templates map[sparkRole]sparkPod, id string) (sparkPod, error) {
	prefix := cmp.Or(s.conf["spark.kubernetes.executor.podNamePrefix"], sparkNamePrefix(s.name, id))
	driver, err := s.pod(sparkDriverRole, templates, id)
	if err != nil {
		return sparkPod{}, err
	}
	driver.Metadata.Name = cmp.Or(s.conf["spark.kubernetes.driver.pod.name"], prefix+"-driver")

	plan := executorPlan{NamePrefix: prefix, Keep: s.conf["spark.kubernetes.executor.deleteOnTermination"] == "false"}
	if plan.Count, err = s.conf.executors(); err != nil {
		return sparkPod{}, err
	}
	if plan.Pod, err = s.pod(sparkExecutorRole, templates, id); err != nil {
		return sparkPod{}, err
	}
	// Executors end with the driver, unless the application sets their run time.
	if plan.Pod.Metadata.Annotations[runTimeAnnotation] == "" {
		plan.Pod.Metadata.Annotations[runTimeAnnotation] = "never"
	}
	encoded, err := json.Marshal(plan)
	if err != nil {
		return sparkPod{}, err
	}
	driver.Metadata.Annotations[sparkExecutorsAnnotation] = string(encoded)
	return driver, nil
}

var notInSparkName = regexp.MustCompile(`[^a-z0-9]+`)

// sparkNamePrefix returns the prefix of the names of an application's pods. It is short enough for
// the suffixes.
func sparkNamePrefix(name, id string) string {
	name = strings.Trim(notInSparkName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.TrimLeft(name[:min(len(name), 30)]+"-"+id[len(id)-16:], "-")
}

// pod returns the pod of a role without its name. Properties override the template.
func (s *sparkSubmission) pod(role sparkRole, templates map[sparkRole]sparkPod, id string) (sparkPod, error) {
	resources, err := s.resources(role)
	if err != nil {
		return sparkPod{}, err
	}
	image := cmp.Or(s.conf[role.kubernetes("container.image")], s.conf["spark.kubernetes.container.image"])
	if image == "" {
		return sparkPod{}, fmt.Errorf("no image for the %s", role)
	}
	pod := templates[role]
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Metadata.Namespace = s.namespace()
	pod.Metadata.Labels = over(pod.Metadata.Labels, s.conf.below(role.kubernetes("label.")),
		map[string]string{sparkRoleLabel: string(role), sparkAppLabel: id})
	pod.Metadata.Annotations = over(pod.Metadata.Annotations, s.conf.below(role.kubernetes("annotation.")))
	if pod.Spec == nil {
		pod.Spec = object{}
	}
	pod.Spec["restartPolicy"] = "Never"
	s.place(role, pod.Spec)
	s.fillContainer(role, pod.Spec, image, resources)
	return pod, nil
}

// place sets the node selector, the scheduler and the ServiceAccount of the pod.
func (s *sparkSubmission) place(role sparkRole, spec object) {
	fill(spec, "nodeSelector", s.conf.below("spark.kubernetes.node.selector."), s.conf.below(role.kubernetes("node.selector.")))
	if scheduler := cmp.Or(s.conf[role.kubernetes("schedulerName")], s.conf["spark.kubernetes.scheduler.name"]); scheduler != "" {
		spec["schedulerName"] = scheduler
	}
	const account = "spark.kubernetes.authenticate.%s.serviceAccountName"
	// The default ServiceAccount of executors is that of the driver.
	if name := cmp.Or(s.conf[fmt.Sprintf(account, role)], s.conf[fmt.Sprintf(account, sparkDriverRole)]); name != "" {
		spec["serviceAccountName"] = name
	}
}

// fillContainer adds Spark's container, or completes that of the template. Other containers of the
// template are kept.
func (s *sparkSubmission) fillContainer(role sparkRole, spec object, image string, r sparkResources) {
	name := s.conf[role.kubernetes("podTemplateContainerName")]
	containers, _ := spec["containers"].([]any)
	var container object
	for _, one := range containers {
		one, _ := one.(object)
		if container == nil || one["name"] == name {
			container = one
		}
	}
	if container == nil {
		container = object{"name": "spark-kubernetes-" + string(role)}
		spec["containers"] = append(containers, container)
	}
	container["image"] = image
	container["args"] = []string{string(role)}
	for kind, quantities := range map[string]map[string]string{"requests": r.requests, "limits": r.limits} {
		fill(child(container, "resources"), kind, quantities)
	}
}

// executor returns the pod of an executor, which is owned by the driver.
func (p executorPlan) executor(number int, driverName, driverUID string) sparkPod {
	id := strconv.Itoa(number)
	pod := p.Pod
	pod.Metadata.Name = p.NamePrefix + "-exec-" + id
	pod.Metadata.Labels = over(pod.Metadata.Labels, map[string]string{sparkExecutorLabel: id})
	pod.Metadata.OwnerReferences = append(slices.Clip(pod.Metadata.OwnerReferences),
		object{"apiVersion": "v1", "kind": "Pod", "name": driverName, "uid": driverUID, "controller": true})
	return pod
}

// over merges maps. Later maps have precedence.
func over(all ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, one := range all {
		maps.Copy(merged, one)
	}
	return merged
}

// fill writes values into the object at a key.
func fill(parent object, key string, values ...map[string]string) {
	into := child(parent, key)
	for name, value := range over(values...) {
		into[name] = value
	}
}

// child returns the object at a key, and creates it if it is missing.
func child(parent object, key string) object {
	found, is := parent[key].(object)
	if !is {
		found = object{}
		parent[key] = found
	}
	return found
}
