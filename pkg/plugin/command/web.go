package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/web"
)

// refresh is how often an open page is read again. A page shows a release within 2 s.
const refresh = time.Second

// loopback is the only address of the pages, because they act with the rights of the caller.
const loopback = "127.0.0.1"

func (s *shell) web() *cobra.Command {
	port, noBrowser := 0, false
	cmd := &cobra.Command{
		Use:   "web [PAGE]",
		Short: "Show jobs, quotas and queues in a browser",
		Long: `Serves pages with jobs, quotas and queues on this computer, and opens a browser. The pages show what you can
view, and update themselves while they are visible. You can pause jobs, set their priority and stop queues if
you have the permissions. Only the browser that opens the printed link can show the pages. The link works once.

PAGE is the path of a page, as each page shows it, or a job.`,
		Example: `  kubectl kube-queue web
  kubectl kube-queue web job/train-c -n research
  kubectl kube-queue web /quotas --port 8080 --no-browser`,
		Args:              atMostOne("one page"),
		ValidArgsFunction: s.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if port < 0 || port > 65535 {
				return usageError{fmt.Errorf("--port must be from 0 to 65535, not %d", port)}
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return c.serveWeb(cmd.Context(), args, port, noBrowser)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "`PORT` of the pages; 0 for any free one.")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "Only print the link.")
	_ = cmd.RegisterFlagCompletionFunc("port", cobra.NoFileCompletions)
	return cmd
}

// serveWeb serves the pages until the context ends.
func (c *cluster) serveWeb(ctx context.Context, args []string, port int, noBrowser bool) error {
	page, err := c.webPage(ctx, args)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("serving the pages; choose another --port: %w", err)
	}
	name := ""
	if raw, err := c.flags.ToRawKubeConfigLoader().RawConfig(); err == nil {
		name = raw.CurrentContext
	}
	if c.flags.Context != nil {
		name = cmp.Or(*c.flags.Context, name)
	}
	server := web.New(web.Options{
		Open:      func(string) (web.Reader, error) { return c.NewReader(), nil },
		Namespace: c.Namespace, Cluster: name, Hosts: []string{listener.Addr().String()}, Refresh: refresh, Now: c.Now,
	})
	link := server.Link(page)
	c.say("Open this link, which works once:\n")
	fmt.Fprintf(c.Streams.Out, "  %s\n\nThe pages are served until Ctrl-C.\n", link)
	if !noBrowser && c.Browse != nil {
		if err := c.Browse(link); err != nil {
			c.warn("No browser was opened: %v.", err)
		}
	}
	return cmp.Or(server.Serve(ctx, listener), ctx.Err())
}

// webPage returns the path of the page that the user named. It makes a request first, so that any login happens before
// the browser opens.
func (c *cluster) webPage(ctx context.Context, args []string) (string, error) {
	if _, err := c.Core.Discovery().ServerVersion(); err != nil {
		return "", err
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "/") {
		return strings.Join(args, ""), nil
	}
	ref, err := jobs.Parse(args)
	if err != nil {
		return "", usageError{err}
	}
	t, err := c.Find(ctx, ref)
	if err != nil {
		return "", err
	}
	if t.Unit == nil {
		return "", errors.New(t.String() + " has no QueueUnit; to see why, run kubectl kube-queue why " + t.String())
	}
	return (&url.URL{Path: "/"}).JoinPath("jobs", t.Unit.Namespace, t.Unit.Name).String(), nil
}
