//! One reader at a time, wherever the broker lets a reader wait for its turn.

use super::Yard;
use crate::support::rabbit::Rabbit;

#[tokio::test]
async fn whoever_cannot_wait_for_a_turn_reads_and_says_so_unless_it_may_not_wait() {
    let rabbit = Rabbit::start().await;
    let mut yard = Yard::on("dead-turn", rabbit.url()).await;
    yard.bury("one", "undecodable", 5).await;
    // No right to declare anything, which is how the operator wants it.
    rabbit.ctl(&["add_user", "looker", "looker"]).await;
    rabbit
        .ctl(&["set_permissions", "looker", "^$", "^$", ".*"])
        .await;
    let usual = std::mem::replace(&mut yard.amqp, rabbit.url_with("looker:looker", ""));
    let (out, err) = yard.run(&["list"], 0).await;
    assert!(out.contains("1  undecodable"), "{out}");
    assert_eq!(err, "");
    // There is no room for one more queue.
    yard.amqp = usual;
    rabbit
        .ctl(&["set_vhost_limits", r#"{"max-queues": 1}"#])
        .await;
    let (out, err) = yard.run(&["list"], 0).await;
    assert!(out.contains("1  undecodable"), "{out}");
    assert!(err.contains("cannot wait for a turn"), "{err}");
    assert!(err.contains("queue limit"), "{err}");
}
