//! Questions of many requests, asked together.
//!
//! One request needs one look-up, one decision and one publish; asked one by one they would cost a
//! round trip each. What is asked while others are being answered goes out with the next round, so
//! that a single request waits for nobody and many share their round trips.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};

type Waiting<Q, A> = (Q, oneshot::Sender<A>);

/// Gathers questions into rounds.
#[derive(Debug)]
pub struct Gather<Q, A> {
    questions: mpsc::UnboundedSender<Waiting<Q, A>>,
}

impl<Q: Send + 'static, A: Send + 'static> Gather<Q, A> {
    /// Asks by `ask`, which gives one answer per question, in order: at most `most` questions in a
    /// round, and at most `rounds` rounds at one time. Must be called within a runtime.
    #[must_use]
    pub fn new<F>(
        most: usize,
        rounds: usize,
        ask: impl Fn(Vec<Q>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let (questions, asked) = mpsc::unbounded_channel();
        tokio::spawn(run(
            asked,
            most,
            Arc::new(Semaphore::new(rounds)),
            Arc::new(ask),
        ));
        Self { questions }
    }

    /// The answer; `None` when the round broke.
    pub async fn ask(&self, question: Q) -> Option<A> {
        let (sender, answer) = oneshot::channel();
        self.questions.send((question, sender)).ok()?;
        answer.await.ok()
    }
}

async fn run<Q, A, F>(
    mut asked: mpsc::UnboundedReceiver<Waiting<Q, A>>,
    most: usize,
    rounds: Arc<Semaphore>,
    ask: Arc<impl Fn(Vec<Q>) -> F + Send + Sync + 'static>,
) where
    Q: Send + 'static,
    A: Send + 'static,
    F: Future<Output = Vec<A>> + Send + 'static,
{
    let mut round = Vec::new();
    while let Ok(permit) = Arc::clone(&rounds).acquire_owned().await {
        if asked.recv_many(&mut round, most).await == 0 {
            return;
        }
        // Nobody waits for the answer to some any more.
        round.retain(|(_, waiting)| !waiting.is_closed());
        if round.is_empty() {
            continue;
        }
        let (questions, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut round).into_iter().unzip();
        let answering = ask(questions);
        tokio::spawn(async move {
            let answers = answering.await;
            drop(permit);
            for (waiting, answer) in waiting.into_iter().zip(answers) {
                // Whoever asked may have gone.
                let _ = waiting.send(answer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn what_is_asked_meanwhile_shares_the_next_round() {
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let (begun, go) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let gather = Arc::new(Gather::new(16, 1, {
            let (sizes, begun, go) = (Arc::clone(&sizes), Arc::clone(&begun), Arc::clone(&go));
            move |questions: Vec<u32>| {
                sizes.lock().unwrap().push(questions.len());
                let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                async move {
                    begun.notify_one();
                    go.acquire().await.unwrap().forget();
                    questions.into_iter().map(|one| one * 2).collect()
                }
            }
        }));
        let ask = |one| {
            let gather = Arc::clone(&gather);
            tokio::spawn(async move { gather.ask(one).await })
        };
        let first = ask(1);
        begun.notified().await;
        let others: Vec<_> = (2..6).map(ask).collect();
        tokio::task::yield_now().await;
        go.add_permits(2);
        assert_eq!(first.await.unwrap(), Some(2));
        for (one, answer) in (2..6).zip(others) {
            assert_eq!(answer.await.unwrap(), Some(one * 2));
        }
        assert_eq!(*sizes.lock().unwrap(), [1, 4]);
    }

    #[tokio::test]
    async fn a_question_whose_asker_has_gone_is_not_asked() {
        let asked = Arc::new(Mutex::new(Vec::<u32>::new()));
        let go = Arc::new(Semaphore::new(0));
        let gather = Arc::new(Gather::new(16, 1, {
            let (asked, go) = (Arc::clone(&asked), Arc::clone(&go));
            move |questions: Vec<u32>| {
                asked.lock().unwrap().extend(&questions);
                let go = Arc::clone(&go);
                async move {
                    go.acquire().await.unwrap().forget();
                    questions
                }
            }
        }));
        let ask = |one| {
            let gather = Arc::clone(&gather);
            tokio::spawn(async move { gather.ask(one).await })
        };
        let first = ask(1);
        tokio::task::yield_now().await;
        let (gone, last) = (ask(2), ask(3));
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.is_err());
        go.add_permits(2);
        assert_eq!(first.await.unwrap(), Some(1));
        assert_eq!(last.await.unwrap(), Some(3));
        assert_eq!(*asked.lock().unwrap(), [1, 3]);
    }
}
