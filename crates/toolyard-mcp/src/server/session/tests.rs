use tokio::time::advance;
use toolyard_core::Object;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn sessions(sessions: usize) -> SessionTable {
    let limits = SessionLimits { max_sessions: sessions, idle_timeout: MINUTE, ..SessionLimits::default() };
    SessionTable::new(limits, ByteBudget::default(), watch::channel(false).1)
}

fn open(sessions: &SessionTable) -> Option<Arc<LegacySession>> {
    sessions.open(&Object::new(), SessionOwner::Local, None)
}

#[test]
fn session_ids_are_random() {
    let sessions = sessions(100);
    let ids: std::collections::HashSet<_> = (0..100).map(|_| open(&sessions).unwrap().id.clone()).collect();
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

#[tokio::test(start_paused = true)]
async fn idle_session_is_closed() {
    let sessions = sessions(2);
    let [used, idle] = [(); 2].map(|()| open(&sessions).unwrap().id.clone());
    advance(MINUTE).await;
    assert!(sessions.get(&used).is_some());
    advance(MINUTE).await;
    assert!(sessions.get(&used).is_some());
    assert!(sessions.get(&idle).is_none());
    assert!(!sessions.close(&idle), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn session_with_running_request_is_in_use() {
    let sessions = sessions(1);
    let running = open(&sessions).unwrap();
    advance(MINUTE * 2).await;
    assert!(sessions.get(&running.id).is_some());
    assert!(open(&sessions).is_none(), "it makes no room for another");
    drop(running);
    assert!(open(&sessions).is_some());
}

#[tokio::test(start_paused = true)]
async fn longest_idle_session_makes_room() {
    let sessions = sessions(2);
    let first = open(&sessions).unwrap().id.clone();
    advance(MINUTE / 10).await;
    let second = open(&sessions).unwrap().id.clone();
    advance(MINUTE / 10).await;
    assert!(sessions.get(&first).is_some());
    let third = open(&sessions).unwrap().id.clone();
    assert!(sessions.get(&second).is_none());
    assert!(sessions.get(&first).is_some() && sessions.get(&third).is_some());
}

/// Runs steps separated by spaces, 1 ms apart, and returns the sessions that are left, by the numbers of the steps that
/// opened them. `A` opens a session of owner A, `A+` one that stays in use, `3` uses the session of step 3, and `~3`
/// releases it.
fn sessions_after(limits: SessionLimits, steps: &str) -> String {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let sessions = SessionTable::new(limits, ByteBudget::default(), watch::channel(false).1);
        let (mut ids, mut retained, mut refused) = (Vec::new(), HashMap::new(), Vec::new());
        for (number, step) in steps.split(' ').enumerate() {
            advance(Duration::from_millis(1)).await;
            match (step.parse::<usize>(), step.strip_suffix('+')) {
                (Ok(used), _) => drop(sessions.get(&id_of_step(&ids, used)).unwrap()),
                _ if step.starts_with('~') => drop(retained.remove(&step[1..])),
                (Err(_), name) => {
                    let owner = match name.unwrap_or(step) {
                        "local" => SessionOwner::Local,
                        name => SessionOwner::Principal(name.into()),
                    };
                    let Some(session) = sessions.open(&Object::new(), owner, None) else {
                        refused.push(number);
                        continue;
                    };
                    ids.push((number, session.id.clone()));
                    if name.is_some() {
                        retained.insert(number.to_string(), session);
                    }
                }
            }
        }
        let open = ids.iter().filter(|(_, id)| sessions.table.read().unwrap().sessions.contains_key(id));
        let open: Vec<_> = open.map(|(number, _)| number.to_string()).collect();
        match refused.is_empty() {
            true => open.join(" "),
            false => format!("{} refused {refused:?}", open.join(" ")),
        }
    })
}

fn id_of_step(ids: &[(usize, Arc<str>)], step: usize) -> Arc<str> {
    ids.iter().find(|(number, _)| *number == step).unwrap().1.clone()
}

#[test]
fn owners_make_room_for_themselves() {
    let check = |case: &str, sessions: usize, per_owner: usize, steps: &str, expected: &str| {
        let limits = SessionLimits {
            max_sessions: sessions,
            max_per_owner: per_owner,
            idle_timeout: MINUTE,
            ..SessionLimits::default()
        };
        assert_eq!(sessions_after(limits, steps), expected, "{case}: {steps}");
    };
    check("share used up: own oldest", 10, 2, "B A A A A", "0 3 4");
    check("share used up: own oldest by use", 10, 2, "A A 0 A", "0 3");
    check("share used up and in use: refused", 10, 2, "B A+ A+ A", "0 1 2 refused [3]");
    check("share used up, older in use: next", 10, 2, "A+ A A A", "0 3");
    check("released: closed again", 10, 2, "A+ A ~0 A A", "3 4");
    check("full: own oldest first", 3, 3, "B A A A", "0 2 3");
    check("full, nothing own: the largest owner's oldest", 4, 3, "B A A A C", "0 2 3 4");
    check("full, one each: one of another's", 2, 1, "A B C", "0 2");
    check("full, the opener is the largest and in use: refused", 3, 3, "A+ A+ B A", "0 1 2 refused [3]");
    check("full, the largest is in use: refused", 3, 2, "A+ A+ B+ C", "0 1 2 refused [3]");
    check("local clients may use all", 3, 1, "local local local local", "1 2 3");
    check(
        "many clients of one key against one of another",
        8,
        4,
        "B A A A A A A A A A A A A",
        "0 9 10 11 12",
    );
    check("two keys against one", 4, 2, "B A A C A C A C A C", "0 6 8 9");
}

/// Number of sessions checked for cleanup when a session is opened.
const EACH_TIDIED: usize = 4 * CLEANUP_CHECKS;

/// Counts the checked sessions, since a clock would measure the machine.
#[tokio::test(start_paused = true)]
async fn opening_at_the_cap_looks_at_few_sessions() {
    let looks = |sessions: &SessionTable| sessions.table.read().unwrap().checks;
    let limits = SessionLimits {
        max_sessions: 2000,
        max_per_owner: 1000,
        idle_timeout: MINUTE,
        ..SessionLimits::default()
    };
    for in_use_count in [0, 1000] {
        let sessions = SessionTable::new(limits, ByteBudget::default(), watch::channel(false).1);
        let of = |owner: &str| sessions.open(&Object::new(), SessionOwner::Principal(owner.into()), None);
        for _ in 0..1000 {
            of("a").unwrap();
        }
        let in_use: Vec<_> = (0..in_use_count).map(|_| of("b").unwrap()).collect();
        let before = looks(&sessions);
        for _ in 0..500 {
            of("a").unwrap();
        }
        assert!(looks(&sessions) - before <= 500 * (1 + EACH_TIDIED), "{in_use_count} of another in use");
        let before = looks(&sessions);
        assert_eq!(of("b").is_some(), in_use.is_empty());
        assert!(looks(&sessions) - before <= MAX_CHECKS + EACH_TIDIED);
    }
}

/// An owner with many sessions in use closes its idle ones.
#[tokio::test(start_paused = true)]
async fn sessions_in_use_do_not_hide_idle_ones() {
    let limits = SessionLimits {
        max_sessions: 2000,
        max_per_owner: 300,
        idle_timeout: MINUTE,
        ..SessionLimits::default()
    };
    let sessions = SessionTable::new(limits, ByteBudget::default(), watch::channel(false).1);
    let open = || sessions.open(&Object::new(), SessionOwner::Principal("a".into()), None);
    let _in_use: Vec<_> = (0..200).map(|_| open().unwrap()).collect();
    for _ in 0..100 {
        open().unwrap();
    }
    assert_eq!((0..500).filter(|_| open().is_none()).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn expired_sessions_are_removed_on_open() {
    let limits = SessionLimits { max_sessions: 100, idle_timeout: MINUTE, ..SessionLimits::default() };
    let sessions = SessionTable::new(limits, ByteBudget::default(), watch::channel(false).1);
    let count = || sessions.table.read().unwrap().sessions.len();
    for number in 0..20 {
        sessions.open(&Object::new(), SessionOwner::Principal(format!("{number}").into()), None).unwrap();
    }
    advance(MINUTE * 2).await;
    for _ in 0..10 {
        open(&sessions).unwrap();
    }
    assert_eq!(count(), 10);
}

/// The exact order of use is unknown then.
#[tokio::test(start_paused = true)]
async fn recently_used_session_can_make_room() {
    let sessions = sessions(1000);
    let ids: Vec<_> = (0..1000).map(|_| open(&sessions).unwrap().id.clone()).collect();
    advance(MINUTE / 10).await;
    assert!(ids.iter().all(|id| sessions.get(id).is_some()));
    for _ in 0..100 {
        let id = open(&sessions).unwrap().id.clone();
        let table = sessions.table.read().unwrap();
        assert!(table.sessions.len() == 1000 && table.sessions.contains_key(&id));
    }
}
