// Charges one order: JSON on standard input, the exit status is the answer.
const fs = require("node:fs");

const { JOURNAL, RSCTL_QUEUE, RSCTL_MESSAGE_ID, RSCTL_ATTEMPT } = process.env;

function answer(outcome, status, reason) {
  if (JOURNAL) {
    fs.appendFileSync(JOURNAL, `${RSCTL_QUEUE} ${RSCTL_MESSAGE_ID} ${RSCTL_ATTEMPT} ${outcome}\n`);
  }
  if (reason) console.error(reason);
  process.exit(status);
}

const { card = "" } = JSON.parse(fs.readFileSync(0, "utf8"));
if (card === "") answer("drop", 65, "the order has no card");
if (card === "BROKEN") answer("retry", 75, "the bank does not answer");
if (card === "SLOW" && Number(RSCTL_ATTEMPT) < 3) answer("retry", 75, "the bank asks to come back");
answer("ack", 0);
