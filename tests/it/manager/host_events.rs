//! `host.down`, `host.up`, `host.changed`: told once, whoever sees it, and signed by nobody who did nothing.

use sandboxer::domain::actor::Actor;
use sandboxer::domain::event::Event;
use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::sandbox::State;

use crate::test_env::script::Act;
use crate::test_env::{TestEnv, finished, of, test_env, with_sandbox};

async fn of_host(house: &TestEnv) -> Vec<Event> {
    let events = house.events(&[]).await;
    events.into_iter().filter(|event| event.kind.as_str().starts_with("host.")).collect()
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

#[tokio::test]
async fn a_host_goes_down_and_comes_back_once_whichever_process_sees_it() {
    let (house, id) = with_sandbox().await;
    assert_eq!(of_host(&house).await, [], "it answers, as before");
    for manager in [&house.manager, &house.other, &house.manager] {
        house.script.sleep.push(Act::no_route());
        house.script(&[], &[Act::no_route()], &[]);
        let started = manager.sleep(&of(&id)).await.unwrap();
        assert!(manager.finish(&started.operation.unwrap()).await.unwrap().0.error.is_some());
    }
    let told = of_host(&house).await;
    assert_eq!(kinds(&told), ["host.down"]);
    assert_eq!(told[0].actor, Actor::observer(), "nobody did that");
    assert_eq!(told[0].sandbox_id, None, "nobody did that");
    assert_eq!(told[0].data["host"], "local");
    // A process that begins now knows it from the log.
    finished(&house.other, house.other.create(CreateRequest::default()).await).await;
    house.create(CreateRequest::default()).await.1.unwrap();
    assert_eq!(kinds(&of_host(&house).await), ["host.down", "host.up"]);
}

#[tokio::test]
async fn two_processes_that_see_it_at_once_tell_it_once() {
    let house = test_env();
    let (one, two) = (house.ready().await, house.ready().await);
    for _ in 0..2 {
        house.script.sleep.push(Act::no_route());
        house.script(&[], &[Act::no_route()], &[]);
    }
    let sleep = async |manager: &sandboxer::manager::SandboxManager, id: String| {
        let started = manager.sleep(&of(id)).await.unwrap();
        manager.finish(&started.operation.unwrap()).await.unwrap();
    };
    tokio::join!(sleep(&house.manager, one), sleep(&house.other, two));
    assert_eq!(kinds(&of_host(&house).await), ["host.down"]);
}

#[tokio::test]
async fn what_is_seen_on_a_host_is_not_signed_by_an_operator_and_says_nothing_against_the_host() {
    let (house, id) = with_sandbox().await;
    house.script.nothing_there.set(true);
    house.manager.refresh_services("local").await.unwrap();
    let record = house.record(&id).await;
    assert_eq!((&record.state, &record.reason), (&State::Lost, &None), "its host answers");
    assert!(record.message.unwrap().contains("has nothing of it"));
    let events = house.events(&[]).await;
    let lost = events.last().unwrap();
    assert_eq!((lost.kind.as_str(), &lost.actor), ("sandbox.lost", &Actor::observer()));
}
