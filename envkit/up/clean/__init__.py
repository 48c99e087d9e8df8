"""What can be deleted, by kind, and what each kind costs to lose.

Without a choice only goes what nobody can miss, whatever the link: what killed runs left (staging folders and
lock files beside environments, temporary folders, half-unpacked packages, downloads of packages that are
unpacked by now, shared memory) and what would not be trusted again (packages that were changed in the
cache). Everything else would have to be fetched or made again, which on a slow link is hours: it is
counted and named, and goes only when asked for, by its kind or with all.

    staging         beside named environments, of dead processes       nothing is lost
    temporary       folders in /tmp and the state folder, of dead ones  nothing is lost
    shared-memory   in /dev/shm, of dead processes of this user         nothing is lost
    unfinished      in the cache: half-made, or no longer trusted       nothing is lost
    partial         downloads that were cut off                         begin again, not resumed
    downloads       whole archives, kept for bundles                    fetched again by the next bundle
    packages        unpacked packages that no environment uses          fetched again by the next install
    pip-files       files of pip sections                               fetched again by the next install
    channels        wheel channels that no lock names                   packed again
    pip             what pip and the resolver keep                      fetched again
    repodata        indexes of channels                                 fetched again by the next lock

Environments are never touched, and packages that they use neither: files are shared by hard links, so
deleting one name of a file frees nothing while another is left. Sizes are what a deletion frees by itself.
A process that uses the cache keeps all kinds in it from being cleaned until it ends (`envkit.fetch.use`), and
nothing outside ENVKIT_HOME and ENVKIT_CACHE is looked at but the two kinds that say so.
"""

from envkit.up.clean.clean import KINDS, Cleaned, clean, here

__all__ = ["KINDS", "Cleaned", "clean", "here"]
