package broker

const keyDeadLetter = "x-dead-letter-exchange"

const keyLimit = "x-delivery-limit"
