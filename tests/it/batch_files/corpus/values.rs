//! Values: numbers, objects, recipients.

use super::{file, rows};
use crate::batch_files::{AwkwardFile, Expected};

pub(super) fn numbers() -> Vec<AwkwardFile> {
    vec![
        rows(
            "numbers-of-spreadsheets",
            "to;body\n4.47901E+11;Hallo\n4,47901E+11;Hallo\n+447700900001.0;Hallo\n\
             \"=\"\"+447700900002\"\"\";Hallo\n'+447700900003;Hallo\n=\"+447700900004\";Hallo\n",
            &[4, 5, 6, 7],
            &[(2, "to"), (3, "to")],
        ),
        rows(
            "spellings-of-numbers",
            "to,body\n+44 7700 900001,Hallo\n+44 (0)7700-900002,Hallo\n07700900003,Hallo\n\
             447700900004,Hallo\n\u{202a}+447700900005\u{202c},Hallo\n########,Hallo\nn/a,Hallo\n",
            &[2, 3, 6],
            &[(4, "to"), (5, "to"), (7, "to"), (8, "to")],
        ),
        rows(
            "only-telephone-numbers-are-unwrapped",
            "to,body,channel\n'abc,Hallo,push\n1E+5,Hallo,push\n1E+5,Hallo,sms\n",
            &[2, 3],
            &[(4, "to")],
        ),
    ]
}

pub(super) fn contents() -> Vec<AwkwardFile> {
    vec![
        rows(
            "formulas",
            "to,body\n+447700900001,\"=HYPERLINK(\"\"https://example.org\"\",\"\"Hallo\"\")\"\n\
             +447700900002,+1+1\n+447700900003,@SUM(1)\n+447700900004,-2\n",
            &[2, 3, 4, 5],
            &[],
        ),
        rows(
            "objects-in-cells",
            "to;content;metadata\n+447700900001;{\"a\":1};\n+447700900002;[1];\n\
             +447700900003;{\"a\":1};{\"a\":1,\"a\":2}\n+447700900004;{\"a\":1};7\n",
            &[2],
            &[(3, "content"), (4, "metadata"), (5, "metadata")],
        ),
        rows(
            "unknown-values",
            "to,body,priority,channel,recipient_timezone,expires_at\n\
             +447700900001,Hallo,urgent,,,\n+447700900002,Hallo,,fax,,\n\
             +447700900003,Hallo,,,Mars/Base,\n+447700900004,Hallo,,,,tomorrow\n\
             +447700900005,Hallo,high,rcs,Europe/Berlin,2099-01-01T00:00:00Z\n",
            &[6],
            &[
                (2, "priority"),
                (3, "channel"),
                (4, "recipient_timezone"),
                (5, "expires_at"),
            ],
        ),
        rows(
            "lanes",
            "to,body,Traffic_Lane\n+447700900001,Hallo,transactional\n+447700900002,Hallo,fast\n",
            &[2],
            &[(3, "traffic_lane")],
        ),
    ]
}

pub(super) fn duplicates() -> Vec<AwkwardFile> {
    let expected =
        |jobs: &[u64], duplicates: &[u64], rejected: &[(u64, &'static str)]| Expected::Rows {
            jobs: jobs.to_vec(),
            duplicates: duplicates.to_vec(),
            rejected: rejected.to_vec(),
        };
    vec![
        file(
            "duplicates-in-other-spellings",
            "to,body\n+447700900001,Hallo\n+44 7700 900001,Hallo you\n+447700900001,Hallo\n",
            expected(&[2], &[3, 4], &[]),
        ),
        file(
            "a-rejected-row-was-not-there",
            "to,body\n+447700900001,\n+447700900001,Hallo\n+447700900001,Hallo\n",
            expected(&[3], &[4], &[(2, "body")]),
        ),
        file(
            "one-recipient-on-several-channels",
            "to,body,channel\n+447700900001,Hallo,\n+447700900001,Hallo,rcs\n\
             +447700900001,Hallo,push\n+447700900001,Hallo,rcs\n+447700900001,Hallo,push\n",
            expected(&[2, 3, 4], &[5, 6], &[]),
        ),
    ]
}
