use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::process::{Gid, Uid};
use tempfile::{TempDir, tempdir};

use crate::open::{component, is_component, strict};
use crate::{Access, Directory, Error, FilePlace, open_regular, read_text};

/// A function that opens a name in a folder.
type Open = fn(std::os::fd::BorrowedFd<'_>, &std::ffi::OsStr, OFlags) -> bool;

/// A folder with a file whose content must not change, and its path.
fn victim() -> (TempDir, std::path::PathBuf) {
    let dir = tempdir().unwrap();
    let path = dir.path().join("victim");
    fs::write(&path, "precious").unwrap();
    (dir, path)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn a_file_has_its_name_once_it_is_complete() {
    let dir = tempdir().unwrap();
    let folder = Directory::named(&dir.path().join("a/b"), Access::Umask).unwrap();
    let (mut file, mut unfinished) = folder.begin("run.json", Access::Umask).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(folder.names().unwrap(), [".run.json.tmp"]);
    unfinished.sync().unwrap();
    unfinished.publish().unwrap();
    assert_eq!(folder.names().unwrap(), ["run.json"]);

    // Dropped before it is complete, it leaves the older one.
    drop(folder.begin("run.json", Access::Umask).unwrap());
    assert_eq!(folder.names().unwrap(), ["run.json"]);
    assert_eq!(fs::read(folder.path_of("run.json")).unwrap(), b"new");
}

#[test]
fn processes_that_write_one_file_do_not_disturb_each_other() {
    let dir = tempdir().unwrap();
    let folder = Directory::named(&dir.path().join("out"), Access::Umask).unwrap();
    let (mut one, mut first) = folder.begin_shared("a.parquet", Access::Umask).unwrap();
    one.write_all(b"one").unwrap();
    // A lock belongs to the open file: a second one of this process is refused as that of another process is.
    let (mut two, mut second) = folder.begin_shared("a.parquet", Access::Umask).unwrap();
    two.write_all(b"two").unwrap();
    assert_eq!(folder.names().unwrap().len(), 2);
    first.publish().unwrap();
    assert_eq!(fs::read(folder.path_of("a.parquet")).unwrap(), b"one");
    second.publish().unwrap();
    assert_eq!(folder.names().unwrap(), ["a.parquet"]);
    assert_eq!(fs::read(folder.path_of("a.parquet")).unwrap(), b"two");
}

#[test]
fn temporary_files_of_processes_that_are_gone_are_removed() {
    let dir = tempdir().unwrap();
    let folder = Directory::named(&dir.path().join("out"), Access::Umask).unwrap();
    // As a killed process leaves it: there, and not locked. Other names stay.
    for name in [
        ".a.parquet.00000000deadbeef.tmp",
        ".b.parquet.00000000deadbeef.tmp",
        ".a.parquet.tmp",
        ".a.parquet.mine.tmp",
    ] {
        fs::write(folder.path_of(name), "half").unwrap();
    }
    let (_file, unfinished) = folder.begin_shared("a.parquet", Access::Umask).unwrap();
    assert!(!folder.has(".a.parquet.00000000deadbeef.tmp"));
    assert_eq!(folder.names().unwrap().len(), 4);
    assert_eq!(folder.remove_abandoned(|name| name == "b.parquet").unwrap(), 1);
    drop(unfinished);
    let mut names = folder.names().unwrap();
    names.sort();
    assert_eq!(names, [".a.parquet.mine.tmp", ".a.parquet.tmp"]);
}

#[test]
fn planted_temporary_names_are_removed_and_not_followed() {
    let (dir, victim) = victim();
    let folder = Directory::named(&dir.path().join("out"), Access::Umask).unwrap();
    symlink(&victim, folder.path_of(".run.json.tmp")).unwrap();
    let (mut file, mut unfinished) = folder.begin("run.json", Access::Umask).unwrap();
    file.write_all(b"new").unwrap();
    unfinished.publish().unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(folder.path_of("run.json")).unwrap(), b"new");
    assert!(
        fs::symlink_metadata(folder.path_of("run.json"))
            .unwrap()
            .is_file()
    );

    // A FIFO under the temporary name would take the data, or hang.
    fifo(&folder.path_of(".page.tmp"));
    folder.begin("page", Access::Umask).unwrap().1.publish().unwrap();
    assert!(fs::symlink_metadata(folder.path_of("page")).unwrap().is_file());
}

#[test]
fn files_with_their_name_at_once_replace_links_and_do_not_follow_them() {
    let (dir, victim) = victim();
    let link = dir.path().join("trace.pcapng");
    symlink(&victim, &link).unwrap();
    let place = FilePlace::named(&link).unwrap();
    let error = place.create(false, Access::Private).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    place
        .create(true, Access::Private)
        .unwrap()
        .write_all(b"packets")
        .unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(mode(&link), 0o600);
}

#[test]
fn folders_below_are_not_followed_through_links() {
    let (dir, _) = victim();
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let folder = Directory::named(&dir.path().join("out"), Access::Umask).unwrap();
    symlink(&other, folder.path_of("flows")).unwrap();
    let error = folder.below("flows", Access::Umask).unwrap_err();
    assert!(matches!(error, Error::Link { .. }), "{error}");
    fs::write(folder.path_of("events"), "").unwrap();
    let error = folder.below("events", Access::Umask).unwrap_err();
    assert!(
        error.to_string().ends_with("out/events: cannot be opened"),
        "{error}"
    );
    for outside in ["..", ".", "", "a/b", "/tmp"] {
        assert!(folder.below(outside, Access::Umask).is_err(), "{outside:?}");
    }
}

#[test]
fn kernels_without_openat2_refuse_the_same() {
    let (dir, victim) = victim();
    let folder = Directory::named(dir.path(), Access::Umask).unwrap();
    symlink(&victim, dir.path().join("link")).unwrap();
    symlink(dir.path(), dir.path().join("folder")).unwrap();
    let both: [Open; 2] = [
        |dir, name, flags| strict(dir, name, flags, Mode::empty()).is_ok(),
        |dir, name, flags| component(dir, name, flags, Mode::empty()).is_ok(),
    ];
    for open in both {
        assert!(open(folder.handle(), "victim".as_ref(), OFlags::RDONLY));
        assert!(!open(folder.handle(), "link".as_ref(), OFlags::WRONLY));
        assert!(!open(
            folder.handle(),
            "folder".as_ref(),
            OFlags::RDONLY | OFlags::DIRECTORY
        ));
    }
    for (name, is) in [
        ("a", true),
        ("..", false),
        (".", false),
        ("", false),
        ("a/b", false),
        ("/a", false),
    ] {
        assert_eq!(is_component(name.as_ref()), is, "{name:?}");
    }
}

#[test]
fn parents_may_be_links_and_the_folder_itself_only_an_own_one() {
    let (dir, _) = victim();
    let real = dir.path().join("real");
    fs::create_dir(&real).unwrap();
    let link = dir.path().join("link");
    symlink("real", &link).unwrap();
    let folder = Directory::named(&link.join("out"), Access::Umask).unwrap();
    drop(folder.create("x", false, Access::Umask).unwrap());
    assert!(real.join("out/x").is_file());
    // The link is the caller's own; a slash at its end changes nothing.
    for named in [link.clone(), dir.path().join("link/")] {
        let folder = Directory::named(&named, Access::Umask).unwrap();
        assert_eq!(folder.names().unwrap(), ["out"]);
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    std::os::unix::fs::lchown(&link, Some(65_534), Some(65_534)).unwrap();
    let error = Directory::named(&link, Access::Umask).unwrap_err();
    assert!(
        matches!(error, Error::ForeignLink { owner: 65_534, .. }),
        "{error}"
    );
    // A parent is followed by the ordinary rules, for any owner.
    Directory::named(&link.join("out"), Access::Umask).unwrap();
}

#[test]
fn folders_that_were_made_and_stay_empty_go() {
    let dir = tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    let folder = Directory::named(&deep, Access::Umask).unwrap();
    let table = folder.below("flows", Access::Umask).unwrap();
    let unfinished = table.begin("part-0.parquet", Access::Umask).unwrap();
    assert!(deep.join("flows/.part-0.parquet.tmp").is_file());
    drop((unfinished, table, folder));
    assert!(!dir.path().join("a").exists());
    assert!(dir.path().exists());

    // A folder that was there before stays, and so does one with a file.
    fs::create_dir(dir.path().join("mine")).unwrap();
    drop(Directory::named(&dir.path().join("mine"), Access::Umask).unwrap());
    let folder = Directory::named(&deep, Access::Umask).unwrap();
    drop(folder.create("x", false, Access::Umask).unwrap());
    drop(folder);
    assert!(dir.path().join("mine").is_dir() && deep.join("x").is_file());
}

#[test]
fn what_is_private_is_its_owners_alone() {
    let dir = tempdir().unwrap();
    let folder = Directory::named(&dir.path().join("live"), Access::Private).unwrap();
    let table = folder.below("flows", Access::Private).unwrap();
    table
        .begin("part-0.parquet", Access::Private)
        .unwrap()
        .1
        .publish()
        .unwrap();
    assert_eq!(mode(folder.path()), 0o700);
    assert_eq!(mode(table.path()), 0o700);
    assert_eq!(mode(&table.path_of("part-0.parquet")), 0o600);
}

#[test]
fn a_file_that_a_user_names_replaces_the_older_one_when_it_is_whole() {
    let (_dir, path) = victim();
    let place = FilePlace::named(&path).unwrap();
    let mut output = place.begin(true, Access::Umask).unwrap();
    output.write_all(b"half").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    drop(output);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let mut output = place.begin(true, Access::Umask).unwrap();
    output.write_all(b"whole").unwrap();
    output.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    assert!(FilePlace::named(&path.join("")).is_err(), "a folder's name");
}

#[test]
fn devices_and_fifos_are_written_to_and_not_replaced() {
    for device in [
        "/dev/null",
        "/dev/full",
        "/dev/stdout",
        "/dev/fd/1",
        "/proc/self/fd/1",
    ] {
        let before = fs::symlink_metadata(device).unwrap().ino();
        let mut output = FilePlace::named(Path::new(device))
            .unwrap()
            .begin(true, Access::Umask)
            .unwrap();
        output.write_all(b"").unwrap();
        output.finish().unwrap();
        if !device.contains("fd/") {
            assert_eq!(fs::symlink_metadata(device).unwrap().ino(), before, "{device}");
        }
    }
    let mut output = FilePlace::named(Path::new("/dev/full"))
        .unwrap()
        .begin(true, Access::Umask)
        .unwrap();
    output.write_all(b"x").unwrap();
    let error = output.finish().unwrap_err();
    assert_eq!(error.to_string(), "/dev/full: cannot be written");

    let dir = tempdir().unwrap();
    let path = dir.path().join("fifo");
    fifo(&path);
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    let mut output = FilePlace::named(&path)
        .unwrap()
        .begin(true, Access::Umask)
        .unwrap();
    output.write_all(b"through").unwrap();
    output.finish().unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
}

#[test]
fn only_regular_files_are_read_and_only_so_much_of_them() {
    let (dir, path) = victim();
    assert_eq!(read_text(&path, 8).unwrap(), "precious");
    let error = read_text(&path, 7).unwrap_err();
    assert!(
        error.to_string().ends_with("victim: larger than 7 bytes"),
        "{error}"
    );
    let pipe = dir.path().join("fifo");
    fifo(&pipe);
    for (path, kind) in [
        (pipe.as_path(), "a FIFO"),
        (Path::new("/dev/zero"), "a device"),
        (dir.path(), "a folder"),
    ] {
        let error = open_regular(path).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{}: {kind}, not a regular file", path.display())
        );
    }
    // The system states a length of 0 for its own files.
    assert!(
        read_text(Path::new("/proc/self/status"), 1 << 20)
            .unwrap()
            .contains("Pid:")
    );
    assert!(open_regular(&dir.path().join("none")).unwrap_err().is_not_found());
}

#[test]
fn a_made_folder_is_kept_or_removed_and_others_are_none() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("above/out");
    drop(Directory::made(&path).unwrap().unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    Directory::made(&path).unwrap().unwrap().keep();
    assert_eq!(mode(&path), 0o700);
    assert!(Directory::made(&path).unwrap().is_none(), "it is there");
    assert!(Directory::made(&dir.path().join("above/..")).unwrap().is_none());
    for (link, target) in [("link", "above"), ("nowhere", "missing")] {
        symlink(target, dir.path().join(link)).unwrap();
        assert!(
            Directory::made(&dir.path().join(link)).unwrap().is_none(),
            "{link}"
        );
    }
    assert!(!dir.path().join("missing").exists());
}

#[test]
fn a_folder_is_given_away_and_not_what_has_its_name() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempdir().unwrap();
    let (out, moved, victim) = (
        dir.path().join("out"),
        dir.path().join("moved"),
        dir.path().join("victim"),
    );
    fs::create_dir(&victim).unwrap();
    let folder = Directory::made(&out).unwrap().unwrap();
    fs::rename(&out, &moved).unwrap();
    symlink(&victim, &out).unwrap();
    folder.give(Uid::from_raw(54_321), Gid::from_raw(54_322)).unwrap();
    let owner = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        (found.uid(), found.gid())
    };
    assert_eq!((owner(&moved), owner(&victim)), ((54_321, 54_322), (0, 0)));
}

#[test]
fn files_are_continued_read_and_named_and_links_are_not() {
    use std::io::{Read as _, Write as _};
    let dir = tempdir().unwrap();
    let folder = Directory::named(dir.path(), Access::Private).unwrap();
    let (mut file, bytes) = folder.append("a.part", Access::Private).unwrap();
    assert_eq!(bytes, 0);
    file.write_all(b"abc").unwrap();
    let (mut file, bytes) = folder.append("a.part", Access::Private).unwrap();
    assert_eq!(bytes, 3);
    file.write_all(b"de").unwrap();
    folder.rename("a.part", "a").unwrap();
    let mut text = String::new();
    folder.open("a").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "abcde");
    assert_eq!(mode(&dir.path().join("a")), 0o600);
    symlink(dir.path().join("a"), dir.path().join("link")).unwrap();
    assert!(folder.append("link", Access::Private).is_err());
    assert!(folder.open("link").is_err());
    assert!(folder.append("../b", Access::Private).is_err());
    assert!(folder.open("none").unwrap_err().is_not_found());
    // A FIFO is not waited for.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.path().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(folder.append("fifo", Access::Private).is_err());
    assert!(folder.open("fifo").is_err());
}
