package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
)

// Formats of the output.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
	// formatColumns precedes the columns. Formats with an argument print the same as in kubectl.
	formatColumns = "custom-columns="
)

// output holds the flags that control what a command prints.
type output struct {
	format  string
	formats []string
	// templates permits formats that select fields, as in kubectl.
	templates bool
	// printer prints objects; nil for tables.
	printer   printers.ResourcePrinter
	noHeaders bool
	watch     bool
	// refreshes makes --watch repeat the question after each interval.
	refreshes bool
	interval  time.Duration
}

// add adds the flags. The first format is the default.
func (o *output) add(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	known := strings.Join(formats, ", ")
	if o.templates {
		known += ", custom-columns=COLUMNS, jsonpath=TEMPLATE, go-template=TEMPLATE"
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", formats[0], "Output `FORMAT`: "+known+".")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print tables without titles.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// addRefresh adds the flags of commands that repeat a question.
func (o *output) addRefresh(cmd *cobra.Command) {
	o.refreshes = true
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print the answer again whenever it changes, until Ctrl-C.")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "With --watch: how often to ask.")
}

func (o *output) check() error {
	if err := o.choose(); err != nil {
		return usageError{fmt.Errorf("--output: %w", err)}
	}
	if o.refreshes && o.interval <= 0 {
		return usageError{fmt.Errorf("--interval must be positive, not %v", o.interval)}
	}
	return nil
}

func (o *output) choose() (err error) {
	spec, isColumns := strings.CutPrefix(o.format, formatColumns)
	switch {
	case slices.Contains(o.formats, o.format):
		o.printer = map[string]printers.ResourcePrinter{formatJSON: &printers.JSONPrinter{}, formatYAML: &printers.YAMLPrinter{}, formatName: &printers.NamePrinter{}}[o.format]
		return nil
	case o.templates && isColumns:
		o.printer, err = parseColumns(spec, !o.noHeaders)
		return err
	case o.templates:
		o.printer, err = genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(o.format)
	}
	if o.printer == nil && err == nil || genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("unknown format %q; known formats: %s%s", o.format, strings.Join(o.formats, ", "), access.DidYouMean(o.format, o.formats))
	}
	return err
}

// isTable reports whether the output is for people.
func (o *output) isTable() bool { return o.format == formatTable || o.format == formatWide }

// view returns how to show tables.
func (s *shell) view(o *output) render.View {
	return render.View{Style: s.style(), Wide: o.format == formatWide, Header: !o.noHeaders, Now: s.Now()}
}

// object prints an object in a format other than a table.
func (o *output) object(to io.Writer, object runtime.Object) error {
	return o.printer.PrintObj(object, to)
}

// clearScreen moves to the top of a terminal and clears it.
const clearScreen = "\x1b[H\x1b[2J"

// repeat prints an answer and, with --watch, prints it again whenever it changes.
func (s *shell) repeat(ctx context.Context, o *output, answer func(context.Context, io.Writer) error) error {
	last := ""
	for {
		var out bytes.Buffer
		if err := answer(ctx, &out); err != nil {
			return err
		}
		if text := out.String(); text != last {
			switch {
			case o.watch && s.Terminal:
				fmt.Fprint(s.Streams.Out, clearScreen)
			case last != "":
				fmt.Fprintln(s.Streams.Out)
			}
			if _, err := io.WriteString(s.Streams.Out, text); err != nil {
				return err
			}
			last = text
		}
		if !o.watch {
			return nil
		}
		if !s.Wait(ctx, o.interval) {
			return ctx.Err()
		}
	}
}
