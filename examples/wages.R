# Wages by age and sex from R: a private regression, odds ratios and a ledger.
library(reticulate)
dp <- import("dpbayes_sklearn", convert = FALSE)

set.seed(1)
n <- 20000
people <- data.frame(age = sample(18:80, n, TRUE), sex = sample(c("f", "m"), n, TRUE))
people$wage <- 8 + 0.15 * people$age + 2 * (people$sex == "m") + rnorm(n, sd = 4)

# Public facts, from a codebook: the ranges of numbers and the values of factors.
columns <- list(age = dp$Interval(18, 80), sex = dp$Categories(c("f", "m")))
ledger <- dp$BudgetAccountant(epsilon = 2)

# Slopes with intervals that include the privacy noise.
schema <- dp$Schema(columns, target = dp$Interval(0, 60))
model <- dp$BayesianLinearRegression(1, schema = schema, accountant = ledger)
invisible(model$fit(people, target = "wage"))
slopes <- read.csv(text = py_to_r(model$coefficients()$to_frame()$to_csv()))
print(slopes[, c("coefficient", "estimate", "low", "high")])

# Odds ratios. A column of texts, or a factor, is a class.
schema <- dp$Schema(columns, target = dp$Categories(c("no", "yes")))
logit <- dp$BayesianLogisticRegression(
  1, schema = schema, effects = "linear", intervals = TRUE, accountant = ledger
)
well_paid <- ifelse(people$wage > 16, "yes", "no")
invisible(logit$fit(people[, c("age", "sex")], well_paid))
cat(py_str(logit$coefficients()), "\n")

# New people, what was promised and spent, and a file for those who get the model.
others <- data.frame(age = c(30, 50), sex = c("f", "m"))
print(py_to_r(model$predict(others)$tolist()))
cat(py_str(model$guarantee_), py_str(ledger), sep = "\n")
writeLines(py_to_r(model$to_json()), tempfile(fileext = ".json"))
