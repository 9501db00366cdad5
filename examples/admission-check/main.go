// Command admission-check is an example of a controller that decides an admission check. It passes jobs
// from one hour of the day to another (UTC), such as from 18 to 6. docs/concepts/admission-checks.md
// describes how to run it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig; if empty, the ServiceAccount of the pod is used")
	check := flag.String("check", "after-hours", "name of the AdmissionCheck")
	from := flag.Int("from", 18, "hour from which jobs start")
	to := flag.Int("to", 6, "hour from which no more jobs start")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client := clientset.NewForConfigOrDie(config)
	decide := func(object any) {
		unit, hour := object.(*v1alpha1.QueueUnit).DeepCopy(), time.Now().UTC().Hour()
		passes := *from <= hour && hour < *to || *from > *to && (hour >= *from || hour < *to)
		for i := range unit.Status.AdmissionChecks {
			state := &unit.Status.AdmissionChecks[i]
			wants, message := v1alpha1.CheckPending, fmt.Sprintf("jobs start from %d:00 UTC", *from)
			if passes {
				wants, message = v1alpha1.CheckReady, ""
			}
			if unit.Status.Phase != v1alpha1.PhaseReserved || state.Name != *check || state.State != v1alpha1.CheckPending || state.Message == message && !passes {
				continue
			}
			if state.State != wants {
				state.LastTransitionTime = metav1.Now()
			}
			state.State, state.Message = wants, message
			// The version protects what others have written since. After a conflict, the informer reports the unit again.
			patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": unit.ResourceVersion},
				"status": map[string]any{"admissionChecks": unit.Status.AdmissionChecks}})
			_, err := client.SchedulingV1alpha1().QueueUnits(unit.Namespace).Patch(ctx, unit.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil && !apierrors.IsConflict(err) {
				log.Print(err)
			}
		}
	}
	// Each unit is decided when it changes, and again every minute.
	listed := cache.NewListWatchFromClient(client.SchedulingV1alpha1().RESTClient(), "queueunits", metav1.NamespaceAll, fields.Everything())
	units := cache.NewSharedInformer(listed, &v1alpha1.QueueUnit{}, time.Minute)
	units.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: decide, UpdateFunc: func(_, object any) { decide(object) }})
	units.RunWithContext(ctx)
}
