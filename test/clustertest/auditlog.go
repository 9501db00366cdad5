package clustertest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// MarkerPrefix is the prefix of the names of the ConfigMaps that mark a place in the audit log.
const MarkerPrefix = "audit-log-marker-"

// CompleteAuditLog waits until the audit log contains all writes up to now.
func (c *Cluster) CompleteAuditLog(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	marker := log.Marker{Namespace: "default", Name: fmt.Sprint(MarkerPrefix, time.Now().UnixNano())}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: marker.Name}}
	if _, err := client.CoreV1().ConfigMaps(marker.Namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("marking the end of the audit log: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return log.WaitFor(ctx, c.AuditLog, marker)
}
