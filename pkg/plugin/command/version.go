package command

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
)

// controllerName is the name of the Deployment of kube-queue-controller.
const controllerName = "kube-queue-controller"

func (s *shell) version() *cobra.Command {
	client := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and of kube-queue in the cluster",
		Long: `Prints the version of the plugin and, if you can read Deployments in the namespace of kube-queue, the version of
kube-queue-controller in the cluster.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.say("Plugin:     %s", programVersion())
			if client {
				return nil
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			deployment, err := c.Core.AppsV1().Deployments(c.QueueNamespace).Get(cmd.Context(), controllerName, metav1.GetOptions{})
			switch {
			case access.IsMissingObject(err):
				s.warn("There is no Deployment %s in namespace %s: the version in the cluster is not known.", controllerName, c.QueueNamespace)
				return nil
			case apierrors.IsForbidden(err):
				s.warn("You may not read Deployments in namespace %s: the version in the cluster is not known.", c.QueueNamespace)
				return nil
			case err != nil:
				return err
			}
			for _, container := range deployment.Spec.Template.Spec.Containers {
				s.say("Controller: %s", cmp.Or(tagOf(container.Image), container.Image))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "Print only the version of the plugin.")
	return cmd
}

// tagOf returns the tag of an image; empty if it has none.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(name, ":")
	return tag
}
