package cmdline

import (
	"flag"

	"github.com/urfave/cli/v2"
)

// urfave/cli works out the names of a flag by a regular expression whenever it is asked, and asks each flag for each other
// one: a third of what atm send did. These flags know them.
type (
	boolFlag struct {
		*cli.BoolFlag
		names []string
	}
	stringFlag struct {
		*cli.StringFlag
		names []string
	}
	countFlag struct {
		*count
		names []string
	}
	genericFlag struct {
		*cli.GenericFlag
		names []string
	}
	listFlag struct {
		*cli.StringSliceFlag
		names []string
	}
)

func (f *boolFlag) Names() []string    { return f.names }
func (f *stringFlag) Names() []string  { return f.names }
func (f *countFlag) Names() []string   { return f.names }
func (f *genericFlag) Names() []string { return f.names }
func (f *listFlag) Names() []string    { return f.names }

func (f *boolFlag) Apply(set *flag.FlagSet) error {
	return each(f.names, func(name string) { set.Bool(name, f.Value, f.Usage) })
}

func (f *stringFlag) Apply(set *flag.FlagSet) error {
	return each(f.names, func(name string) { set.String(name, f.Value, f.Usage) })
}

func (f *countFlag) Apply(set *flag.FlagSet) error {
	return each(f.names, func(name string) { set.Int(name, f.Value, f.Usage) })
}

func (f *genericFlag) Apply(set *flag.FlagSet) error {
	return each(f.names, func(name string) { set.Var(f.Value, name, f.Usage) })
}

func each(names []string, do func(name string)) error {
	for _, name := range names {
		do(name)
	}
	return nil
}

func namesOf(name string, aliases []string) []string { return append([]string{name}, aliases...) }

// knowNames replaces flags by those that know their names.
func knowNames(flags []cli.Flag) {
	for i, f := range flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			flags[i] = &boolFlag{f, namesOf(f.Name, f.Aliases)}
		case *cli.StringFlag:
			flags[i] = &stringFlag{f, namesOf(f.Name, f.Aliases)}
		case *count:
			flags[i] = &countFlag{f, namesOf(f.Name, f.Aliases)}
		case *cli.GenericFlag:
			flags[i] = &genericFlag{f, namesOf(f.Name, f.Aliases)}
		case *cli.StringSliceFlag:
			flags[i] = &listFlag{f, namesOf(f.Name, f.Aliases)}
		}
	}
}
